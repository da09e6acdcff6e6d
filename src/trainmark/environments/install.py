"""Makes an environment, or leaves none; removes one."""

from __future__ import annotations

import errno
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from trainmark.environments import pip
from trainmark.environments.environment import Environment, State, find
from trainmark.environments.importing import imported_version
from trainmark.environments.install_lock import alone
from trainmark.environments.links import link_libraries
from trainmark.environments.locks import Lock, lock_of, refuse_unknown, why_none
from trainmark.environments.place import EnvironmentFiles, Marker, mark, marker_of, unmark
from trainmark.environments.process import run
from trainmark.environments.pythons import choose, version_of
from trainmark.errors import UserError

VENV_SECONDS = 600.0


class Display(Protocol):
    """What an install shows while it goes on; the command line decides how it looks."""

    def progress(self, done: int, total: int, what: str) -> None: ...

    def note(self, text: str) -> None: ...


class InstallError(UserError):
    """One sentence: what failed, and what mends it."""


def install(name: str, display: Display, *, python: str | None = None, force: bool = False) -> Environment:
    """Makes the environment that the lock describes; one that stands there stays until this one is whole."""
    refuse_unknown(name)
    lock = lock_of(name)
    if lock is None:
        raise UserError(f"{why_none(name)}.")
    if lock.unavailable:
        raise UserError(f"{name} cannot be installed here: {lock.unavailable}.")
    place = EnvironmentFiles(name)
    try:
        with alone(place, display.note) as lock_descriptor:
            _recover(place)
            present = find(name)
            if present and present.state is State.INSTALLED and not force:
                return present
            chosen = choose(lock, python)
            _check_room(place, lock)
            _replace(place, lock, chosen, display, lock_descriptor)
    except OSError as error:
        raise InstallError(_out_of_reach(place, error)) from error
    made = find(name)
    assert made is not None
    return made


def remove(name: str, display: Display) -> bool:
    """Takes the environment away, half ones too; False where there was nothing."""
    refuse_unknown(name)
    place = EnvironmentFiles(name)
    if not any(path.exists() for path in (place.folder, place.former, place.log)):
        return False
    try:
        with alone(place, display.note):
            for folder in (place.former, place.folder):
                _clear(folder)
            place.log.unlink(missing_ok=True)
    except OSError as error:
        raise InstallError(_out_of_reach(place, error)) from error
    return True


def _recover(place: EnvironmentFiles) -> None:
    """After an install that was killed: the former environment comes back, half a new one goes."""
    if marker_of(place.folder) is not None:
        _clear(place.former)
        return
    _clear(place.folder)
    if place.former.exists():
        place.former.rename(place.folder)


def _replace(
    place: EnvironmentFiles, lock: Lock, python: str, display: Display, lock_descriptor: int
) -> None:
    if place.folder.exists():
        place.folder.rename(place.former)
    try:
        _make(place, lock, python, display, [lock_descriptor])
    finally:
        _recover(place)


def _make(
    place: EnvironmentFiles, lock: Lock, python: str, display: Display, descriptors: Sequence[int]
) -> None:
    version = version_of(python)
    display.progress(0, len(lock.pins), f"environment with Python {version}")
    lines: list[str] = []
    command = [python, "-m", "venv", str(place.folder)]
    ended = run(
        command, lines.append, limit=VENV_SECONDS, environment=pip.unswayed(), descriptors=descriptors
    )
    if ended.code != 0:
        output = " ".join([*lines, ended.errors])
        if "ensurepip is not" in output:
            raise InstallError(
                f"{python} cannot make environments: install its venv package (on Debian "
                "`apt-get install python3-venv`), or name another Python with --python."
            )
        if _free_megabytes(place) < 1:  # venv keeps to itself why it failed
            raise OSError(errno.ENOSPC, "no room", str(place.folder))
        raise InstallError(_failed(place, f"{python} -m venv: {ended.last_line}"))
    if problem := pip.fill(place.python, lock, place.log, display.progress, descriptors):
        raise InstallError(f"{_failed(place, problem)} pip's own words are in {place.log}.")
    missing = link_libraries(place.folder, lock)
    display.progress(len(lock.pins), len(lock.pins), f"checking that {lock.imported} imports")
    seen, reason = imported_version(str(place.python), lock.imported)
    if seen is None:
        lacking = f"; {', '.join(missing)} was not found" if missing else ""
        mend = f": {lock.import_fix}" if lock.import_fix else ""
        raise InstallError(_failed(place, f"it does not import ({reason}{lacking}){mend}"))
    if seen.partition("+")[0] != lock.version:
        raise InstallError(_failed(place, f"it says to be {seen}, and the lock says {lock.version}"))
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    mark(place.folder, Marker(lock.name, seen, str(version), lock.digest, now))


def _check_room(place: EnvironmentFiles, lock: Lock) -> None:
    free = _free_megabytes(place)
    if free < lock.megabytes:
        raise InstallError(
            f"{lock.name} takes {lock.megabytes:,} MB, and {place.folder.parent} has {free:,} MB free: "
            "make room, or set TRAINMARK_HOME to a folder on a larger disk."
        )


def _free_megabytes(place: EnvironmentFiles) -> int:
    return shutil.disk_usage(place.folder.parent).free // 1_000_000


def _clear(folder: Path) -> None:
    if folder.is_symlink():
        folder.unlink()
    elif folder.exists():
        unmark(folder)
        shutil.rmtree(folder)


def _failed(place: EnvironmentFiles, why: str) -> str:
    return f"{place.name} was not installed: {why.rstrip('.')}."


def _out_of_reach(place: EnvironmentFiles, error: OSError) -> str:
    where = error.filename or place.folder
    if error.errno == errno.ENOSPC:
        return _failed(
            place, f"the disk is full at {where}; make room, or set TRAINMARK_HOME to another disk"
        )
    return _failed(place, f"{where}: {error.strerror or error}; set TRAINMARK_HOME to a folder of your own")
