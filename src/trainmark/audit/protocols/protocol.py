"""What a named protocol is: whose rule, its usual window, and how it turns a folder of logs into a table.

Also where such a rule goes wrong (a doubt), what the path of a log says (`1n8g/rn50_b128_fp32_3.log`, or
`…gpu8_amp_bs128.txt`), and times as logs print them.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from trainmark.base.errors import UserError
from trainmark.base.files import read_regular


@dataclass(frozen=True)
class ProtocolDoubt:
    """`code` is stable; `message` names the log and, where its lines allow, our figure."""

    code: str
    message: str


class RuleStopsError(UserError):
    """The rule cannot be applied to these logs: the program it comes from ends here with a traceback."""


class BatchWindow(NamedTuple):
    """The counts that a rule is called with: it ignores `warmup` batches and ends at batch `train`."""

    warmup: int
    train: int


@dataclass(frozen=True)
class Reading:
    """`table` is their result to the digit; `doubts` say where it is wrong; `ours` is the right one."""

    table: dict[str, Any]
    doubts: list[ProtocolDoubt] = field(default_factory=list)
    ours: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Protocol:
    """`window` is None where the rule takes no counts."""

    name: str
    title: str
    source: str
    read: Callable[[Path, BatchWindow], Reading]
    window: BatchWindow | None = None
    smallest_warmup: int = 0
    multiple: int = 1

    def chosen_window(self, warmup: int | None, train: int | None) -> BatchWindow:
        """The usual window, or the one asked for, refused where their program refuses it."""
        if self.window is None:
            if warmup is not None or train is not None:
                raise UserError(f"{self.name} takes no --warmup or --train: its window is part of the rule.")
            return BatchWindow(0, 0)
        window = BatchWindow(
            self.window.warmup if warmup is None else warmup, self.window.train if train is None else train
        )
        if window.warmup < self.smallest_warmup:
            raise UserError(
                f"{self.name} needs --warmup of at least {self.smallest_warmup}, not {window.warmup}."
            )
        if window.train <= window.warmup:
            raise UserError(
                f"{self.name} needs --train above --warmup; got {window.train} after {window.warmup}."
            )
        if window.warmup % self.multiple or window.train % self.multiple:
            raise UserError(f"{self.name} needs --warmup and --train to be multiples of {self.multiple}.")
        return window


LARGEST_BYTES = 64 << 20
CASE = re.compile(r"(?P<nodes>[1-9]\d*)n(?P<devices>[1-9]\d*)g")
LOG_NAME = re.compile(
    r"(?P<model>[^_]+)_b(?P<batch>[1-9]\d*)_(?P<precision>[^_]+)_(?P<repeat>\d+)(?:_.*)?\.log"
)
LOOSE_NAME = {"devices": re.compile(r"gpux?(\d+)", re.I), "batch": re.compile(r"_(?:bs|b)(\d+)(?=[_.])")}


@dataclass(frozen=True)
class CaseLog:
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


def runs_in(folder: Path) -> list[CaseLog]:
    """The logs one folder down, in the order of their names; a single file stands for itself."""
    paths = [folder] if folder.is_file() else sorted(folder.glob("*/*.log"))
    if not paths:
        raise UserError(f"{folder}: no logs; this protocol reads names such as 1n8g/rn50_b128_fp32_1.log.")
    return [_case_log(path) for path in paths]


def _case_log(path: Path) -> CaseLog:
    case, name = CASE.fullmatch(path.parent.name), LOG_NAME.fullmatch(path.name)
    if case is None:
        raise UserError(f"{path}: the folder should say nodes and devices, as 1n8g does.")
    if name is None:
        raise UserError(f"{path}: the name should read like rn50_b128_fp32_1.log.")
    return CaseLog(
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
    match = LOOSE_NAME[what].search(path.name)
    return int(match[1]) if match else None


def lines_of(path: Path) -> list[str]:
    """As Python's text mode splits them, which is what the rules count."""
    try:
        content = io.BytesIO(read_regular(path, LARGEST_BYTES))
        return io.TextIOWrapper(content, encoding="utf-8", errors="replace").readlines()
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}.") from error


class TimeFormat(NamedTuple):
    """How lines print a time: the pattern that finds it, and the format that reads it."""

    pattern: str
    clock: str


DATED = "%Y-%m-%d %H:%M:%S.%f"
DATE_TIME = r"\d{4}-\d{1,2}-\d{1,2}\s\d{1,2}:\d{1,2}:\d{1,2}.\d{1,6}"
TIMES = {
    "date": TimeFormat(DATE_TIME, DATED),
    "logging": TimeFormat(DATE_TIME.replace(".", ","), "%Y-%m-%d %H:%M:%S,%f"),
    "paddle": TimeFormat(DATE_TIME.replace(r".\d{1,6}", r",\d{3}"), "%Y-%m-%d %H:%M:%S,%f"),
    "hours": TimeFormat(r"\d{1,2}:\d{1,2}:\d{1,2}.\d{1,6}", "%H:%M:%S.%f"),
}


def parse_time(text: str, clock: str = DATED) -> datetime | None:
    """None where the text is no such time."""
    try:
        return datetime.strptime(text, clock)
    except ValueError:
        return None


def seconds_between(begin: str, end: str, clock: str = DATED) -> float | None:
    """None where either is no time."""
    first, last = parse_time(begin, clock), parse_time(end, clock)
    return (last - first).total_seconds() if first and last else None
