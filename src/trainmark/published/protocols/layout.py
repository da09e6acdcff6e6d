"""What the path of a log says: `1n8g/rn50_b128_fp32_3.log`, or `…gpu8_amp_bs128.txt`."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from pathlib import Path

from trainmark.errors import UserError
from trainmark.regular_file import read_regular

LARGEST_BYTES = 64 << 20
CASE = re.compile(r"(?P<nodes>[1-9]\d*)n(?P<devices>[1-9]\d*)g")
NAME = re.compile(r"(?P<model>[^_]+)_b(?P<batch>[1-9]\d*)_(?P<precision>[^_]+)_(?P<repeat>\d+)(?:_.*)?\.log")
LOOSE = {"devices": re.compile(r"gpux?(\d+)", re.I), "batch": re.compile(r"_(?:bs|b)(\d+)(?=[_.])")}


@dataclass(frozen=True)
class Run:
    """One log as its path describes it."""

    path: Path
    model: str
    case: str
    nodes: int
    devices: int
    batch: int
    precision: str
    repeat: int

    @property
    def ranks(self) -> int:
        return self.nodes * self.devices

    @property
    def global_batch(self) -> int:
        return self.ranks * self.batch

    @property
    def label(self) -> str:
        return f"{self.case}/{self.path.name}"


def runs_in(folder: Path) -> list[Run]:
    """The logs one folder down, in the order of their names; a single file stands for itself."""
    paths = [folder] if folder.is_file() else sorted(folder.glob("*/*.log"))
    if not paths:
        raise UserError(f"{folder}: no logs; this protocol reads names such as 1n8g/rn50_b128_fp32_1.log.")
    return [_run(path) for path in paths]


def _run(path: Path) -> Run:
    case, name = CASE.fullmatch(path.parent.name), NAME.fullmatch(path.name)
    if case is None:
        raise UserError(f"{path}: the folder should say nodes and devices, as 1n8g does.")
    if name is None:
        raise UserError(f"{path}: the name should read like rn50_b128_fp32_1.log.")
    return Run(
        path=path,
        model=name["model"],
        case=path.parent.name,
        nodes=int(case["nodes"]),
        devices=int(case["devices"]),
        batch=int(name["batch"]),
        precision=name["precision"],
        repeat=int(name["repeat"]),
    )


def files_in(folder: Path) -> list[Path]:
    """Every log or text file at any depth, for rules that do not care how the folder is laid out."""
    if folder.is_file():
        return [folder]
    paths = sorted(path for path in folder.rglob("*") if path.suffix in {".log", ".txt"} and path.is_file())
    if not paths:
        raise UserError(f"{folder}: no .log or .txt file in it.")
    return paths


def number_in_name(path: Path, what: str) -> int | None:
    """`devices` or `batch` as a free-form file name tells it; None where it does not."""
    match = LOOSE[what].search(path.name)
    return int(match[1]) if match else None


def lines_of(path: Path) -> list[str]:
    """As Python's text mode splits them, which is what the rules count."""
    try:
        content = io.BytesIO(read_regular(path, LARGEST_BYTES))
        return io.TextIOWrapper(content, encoding="utf-8", errors="replace").readlines()
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}.") from error
