"""The locks: which packages make up a framework's environment on a platform, read from `locks/`."""

from __future__ import annotations

import hashlib
import os
import platform
import re
from dataclasses import dataclass
from pathlib import Path

from trainmark.base.errors import UserError, nearest

FOLDER = Path(__file__).resolve().parent / "locks"
HEADER = re.compile(r"# (python|package|import|size|unavailable|if the import fails): (.+)")
LINK = re.compile(r"# link: (\S+) -> (\S+)")
RANGE = re.compile(r"3\.(\d+)(?: - 3\.(\d+))?")
SIZE = re.compile(r"(\d+) MB")
PIN = re.compile(r"([A-Za-z][\w.-]*)==([^\s;]+)")
# As the wheels' tags call it.
MACHINES = {"AMD64": "x86_64", "arm64": "aarch64"}


@dataclass(frozen=True)
class Lock:
    """One file of pins and what its header says; `unavailable` is the reason where nothing can be pinned."""

    name: str
    path: Path
    package: str
    imported: str
    lowest: int
    highest: int
    megabytes: int
    pins: dict[str, str]
    digest: str
    links: dict[str, str]
    import_fix: str | None
    unavailable: str | None

    @property
    def version(self) -> str:
        return self.pins[self.package]

    @property
    def pythons(self) -> str:
        """`3.10`, or `3.11 to 3.14`."""
        return f"3.{self.lowest}" + (f" to 3.{self.highest}" if self.highest > self.lowest else "")

    def takes(self, version: tuple[int, int]) -> bool:
        return (3, self.lowest) <= version <= (3, self.highest)


def here() -> str:
    """This platform as the files name it: `linux-x86_64`."""
    machine = platform.machine()
    return f"{platform.system().lower()}-{MACHINES.get(machine, machine)}"


def folders() -> tuple[Path, ...]:
    """The user's own locks, which go first, and those of the package."""
    own = os.environ.get("TRAINMARK_LOCKS")
    return (Path(own), FOLDER) if own else (FOLDER,)


def names() -> tuple[str, ...]:
    """Every framework that has a lock for some platform."""
    files = (path.name for folder in folders() for path in folder.glob("*.txt"))
    return tuple(sorted({file.partition(".")[0] for file in files}))


def refuse_unknown(name: str) -> None:
    if name not in names():
        raise UserError(f"there is no framework '{name}'{nearest(name, names())}")


def lock_of(name: str) -> Lock | None:
    """The lock for this platform; None where there is none."""
    places = (folder / file for folder in folders() for file in (f"{name}.{here()}.txt", f"{name}.txt"))
    lock_path = next((path for path in places if path.is_file()), None)
    return read(lock_path) if lock_path else None


def why_none(name: str) -> str:
    """Why no environment can be made of this framework on this platform."""
    return (
        f"there is no lock of {name} for {here()}; install it yourself and name that interpreter "
        "with `python:` in the suite"
    )


def read(path: Path) -> Lock:
    text = path.read_text(encoding="utf-8")
    lines = [line.strip() for line in text.splitlines()]
    header = {match[1]: match[2] for line in lines if (match := HEADER.fullmatch(line))}
    wanted = [line for line in lines if line and not line.startswith("#")]
    name = path.name.partition(".")[0]
    package = header.get("package", name)
    pins = {match[1]: match[2] for line in wanted if (match := PIN.match(line))}
    if "unavailable" not in header and package not in pins:
        raise UserError(f"{path}: no line pins '{package}'; add `{package}==VERSION`.")
    low, high = _range(path, header.get("python", "3.10 - 3.99"))
    return Lock(
        name=name,
        path=path,
        package=package,
        imported=header.get("import", name),
        lowest=low,
        highest=high,
        megabytes=_size(path, header.get("size", "0 MB")),
        pins=pins,
        # What is installed decides whether an environment is current; what is said about it does not.
        digest=hashlib.sha256("\n".join(wanted).encode()).hexdigest(),
        links={match[1]: match[2] for line in lines if (match := LINK.fullmatch(line))},
        import_fix=header.get("if the import fails"),
        unavailable=header.get("unavailable"),
    )


def _range(path: Path, text: str) -> tuple[int, int]:
    match = RANGE.fullmatch(text)
    if not match:
        raise UserError(f"{path}: '# python: {text}' is no range; write it as `# python: 3.11 - 3.13`.")
    return int(match[1]), int(match[2] or match[1])


def _size(path: Path, text: str) -> int:
    match = SIZE.fullmatch(text)
    if not match:
        raise UserError(f"{path}: '# size: {text}' is no size; write it as `# size: 650 MB`.")
    return int(match[1])
