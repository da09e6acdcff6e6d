"""Making an environment or leaving none, one install at a time; removing one."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from trainmark.base.errors import UserError
from trainmark.machine.child_process import run
from trainmark.machine.frameworks import interpreters
from trainmark.machine.frameworks.installed import (
    EnvironmentFiles,
    FrameworkEnvironment,
    Marker,
    State,
    find,
    marker_of,
    remove_marker,
    write_marker,
)
from trainmark.machine.frameworks.interpreters import choose_python, imported_version, version_of
from trainmark.machine.frameworks.locks import Lock, lock_of, refuse_unknown, why_none


@contextlib.contextmanager
def install_lock(place: EnvironmentFiles, tell: Callable[[str], None]) -> Iterator[int]:
    """Yields a descriptor that holds the place as long as any process has it open.

    pip gets it too: should Trainmark be killed, no other install begins before that pip is gone.
    """
    place.guard.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(place.guard, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            tell(f"{place.name}: another install or removal is at work; waiting for it to end")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


LINK_FOLDERS = ("usr/lib/*-linux-gnu", "lib/*-linux-gnu", "usr/lib64", "lib64", "usr/lib", "usr/local/lib")


def link_libraries(environment: Path, lock: Lock, root: Path = Path("/")) -> list[str]:
    """Makes the links of the lock's header beside the packages; returns the libraries that are not here."""
    missing = []
    (packages,) = environment.glob("lib/python3*/site-packages")
    for link, library in lock.links.items():
        target = next((path for folder in LINK_FOLDERS for path in root.glob(f"{folder}/{library}")), None)
        if target is None:
            missing.append(library)
            continue
        path = packages / link
        path.unlink(missing_ok=True)
        path.symlink_to(target)
    return missing


VENV_SECONDS = 600.0


class InstallDisplay(Protocol):
    """What an install shows while it goes on; the command line decides how it looks."""

    def progress(self, done: int, total: int, what: str) -> None: ...

    def note(self, text: str) -> None: ...


class InstallError(UserError):
    """One sentence: what failed, and what mends it."""


def install(
    name: str, display: InstallDisplay, *, python: str | None = None, force: bool = False
) -> FrameworkEnvironment:
    """Makes the environment that the lock describes; one that stands there stays until this one is whole."""
    refuse_unknown(name)
    lock = lock_of(name)
    if lock is None:
        raise UserError(f"{why_none(name)}.")
    if lock.unavailable:
        raise UserError(f"{name} cannot be installed here: {lock.unavailable}.")
    place = EnvironmentFiles(name)
    try:
        with install_lock(place, display.note) as lock_descriptor:
            _recover(place)
            present = find(name)
            if present and present.state is State.INSTALLED and not force:
                return present
            chosen = choose_python(lock, python)
            _check_room(place, lock)
            _replace(place, lock, chosen, display, lock_descriptor)
    except OSError as error:
        raise InstallError(_out_of_reach(place, error)) from error
    made = find(name)
    assert made is not None
    return made


def remove(name: str, display: InstallDisplay) -> bool:
    """Takes the environment away, half ones too; False where there was nothing."""
    refuse_unknown(name)
    place = EnvironmentFiles(name)
    if not any(path.exists() for path in (place.folder, place.former, place.log)):
        return False
    try:
        with install_lock(place, display.note):
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
    place: EnvironmentFiles, lock: Lock, python: str, display: InstallDisplay, lock_descriptor: int
) -> None:
    if place.folder.exists():
        place.folder.rename(place.former)
    try:
        _make(place, lock, python, display, [lock_descriptor])
    finally:
        _recover(place)


def _make(
    place: EnvironmentFiles, lock: Lock, python: str, display: InstallDisplay, descriptors: Sequence[int]
) -> None:
    version = version_of(python)
    display.progress(0, len(lock.pins), f"environment with Python {version}")
    lines: list[str] = []
    command = [python, "-m", "venv", str(place.folder)]
    ended = run(
        command,
        lines.append,
        limit=VENV_SECONDS,
        environment=interpreters.without_pip_variables(),
        descriptors=descriptors,
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
    if problem := interpreters.install_packages(place.python, lock, place.log, display.progress, descriptors):
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
    write_marker(place.folder, Marker(lock.name, seen, str(version), lock.digest, now))


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
        remove_marker(folder)
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
