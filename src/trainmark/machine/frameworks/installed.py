"""A framework's environment on disk: its files, its marker, and whether it is still what its lock says."""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import asdict, dataclass
from enum import Enum
from pathlib import Path

from trainmark.base.files import home, sync_folder, write_text
from trainmark.machine.frameworks.locks import Lock, lock_of, why_none
from trainmark.machine.reading import package_name

MARKER = "trainmark.json"


@dataclass(frozen=True)
class Marker:
    """Written as the last act of an install: the version as imported, the Python, the digest of the lock."""

    framework: str
    version: str
    python: str
    lock: str
    installed: str


@dataclass(frozen=True)
class EnvironmentFiles:
    """The files of one framework; `former` is the environment that an install will replace."""

    name: str

    @property
    def folder(self) -> Path:
        return home() / "environments" / self.name

    @property
    def former(self) -> Path:
        return self.folder.with_name(f".{self.name}.former")

    @property
    def guard(self) -> Path:
        return self.folder.with_name(f".{self.name}.lock")

    @property
    def log(self) -> Path:
        return self.folder.with_name(f"{self.name}.log")

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"


def marker_of(folder: Path) -> Marker | None:
    """None for a folder that no install has finished."""
    try:
        return Marker(**json.loads((folder / MARKER).read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def write_marker(folder: Path, marker: Marker) -> None:
    """Makes it an environment; what was installed is on the disk before the marker is."""
    os.sync()
    write_text(folder / MARKER, json.dumps(asdict(marker), indent=1))
    sync_folder(folder)


def remove_marker(folder: Path) -> None:
    """From here on it is no environment, however far its removal comes."""
    with contextlib.suppress(FileNotFoundError):
        (folder / MARKER).unlink()
        sync_folder(folder)


class State(str, Enum):
    INSTALLED = "installed"
    OUTDATED = "outdated"  # whole, but not what the lock says
    BROKEN = "broken"  # was whole, and does not start any more
    INTERRUPTED = "interrupted"  # a folder that no install has finished
    ABSENT = "absent"
    UNAVAILABLE = "unavailable"  # no lock for this platform


@dataclass(frozen=True)
class FrameworkEnvironment:
    """One framework's own interpreter, made by `trainmark frameworks install`."""

    name: str
    python: Path
    version: str
    python_version: str
    state: State
    reason: str | None


def find(name: str) -> FrameworkEnvironment | None:
    """The environment of this framework in whatever state it is, or None; half an install is none."""
    place = EnvironmentFiles(name)
    marker = marker_of(place.folder)
    if marker is None:
        return None
    state, reason = _state(place, marker, lock_of(name))
    return FrameworkEnvironment(name, place.python, marker.version, marker.python, state, reason)


def python_of(name: str) -> str | None:
    """The interpreter that runs this framework; None where no environment is installed.

    A broken one is named too: what does not start is said, and not replaced by something else.
    """
    environment = find(name)
    return str(environment.python) if environment else None


def standing(name: str) -> tuple[State, str | None]:
    """How it stands with this framework here, told by its files alone, and why."""
    if environment := find(name):
        return environment.state, environment.reason
    place = EnvironmentFiles(name)
    if place.folder.exists() or place.former.exists():
        return State.INTERRUPTED, "an install did not come to its end"
    why = unavailable(name)
    return (State.UNAVAILABLE, why) if why else (State.ABSENT, None)


def unavailable(name: str) -> str | None:
    """Return why no environment of this framework can be made here; None where one can."""
    lock = lock_of(name)
    return why_none(name) if lock is None else lock.unavailable


def fix_of(name: str, state: State, reason: str | None) -> str | None:
    """What to do about it."""
    if state is State.INSTALLED:
        return None
    if state is State.UNAVAILABLE:
        return reason
    if state is State.ABSENT and (why := unavailable(name)):
        return why
    anew = " --force" if state is State.BROKEN else ""
    return f"trainmark frameworks install {name}{anew}"


def install_hint(name: str) -> str:
    """Return the command that installs a framework, or why it cannot be installed here."""
    return unavailable(name) or f"`trainmark frameworks install {name}` installs it"


def _state(place: EnvironmentFiles, marker: Marker, lock: Lock | None) -> tuple[State, str | None]:
    if not os.access(place.python, os.X_OK):
        return State.BROKEN, f"its interpreter {place.python} is gone"
    if lock is None or lock.unavailable:
        return State.INSTALLED, None
    installed = _installed_version(place, lock.package)
    if installed is None:
        return State.BROKEN, f"{lock.package} is gone from it"
    if installed != lock.version:
        return State.OUTDATED, f"it holds {lock.package} {installed}, and the lock says {lock.version}"
    if marker.lock != lock.digest:
        return State.OUTDATED, "its lock has changed since it was installed"
    return State.INSTALLED, None


def _installed_version(place: EnvironmentFiles, package: str) -> str | None:
    """Read off the name of the package's metadata: nothing is started."""
    for path in place.folder.glob("lib/python3*/site-packages/*.dist-info"):
        name, _, version = path.name.removesuffix(".dist-info").rpartition("-")
        if package_name(name) == package_name(package):
            return version.partition("+")[0]
    return None
