"""Which Python an environment is made with."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from trainmark.environments.locks import Lock
from trainmark.environments.process import run
from trainmark.errors import UserError

SECONDS = 30.0
ASK = "import sys; print('python', *sys.version_info[:3], sep='.')"


def version_of(python: str) -> str | None:
    """`3.11.7`, or None where it does not answer as Python does."""
    output: list[str] = []
    try:
        # Isolated: nothing of the user's is imported only to learn a version.
        ended = run([python, "-I", "-c", ASK], output.append, limit=SECONDS)
    except OSError:
        return None
    answers = [line.removeprefix("python.").strip() for line in output[-20:] if line.startswith("python.")]
    return answers[-1] if ended.code == 0 and answers else None


def named(asked: str) -> tuple[str, str]:
    """The path and the version of an interpreter that a person has named."""
    path = shutil.which(asked)
    version = version_of(path) if path else None
    if path is None or version is None:
        raise UserError(f"{asked} did not answer as Python does: check `{asked} --version`.")
    return path, version


def choose(lock: Lock, asked: str | None) -> str:
    """The one asked for, else Trainmark's own, else the newest found; always one that the lock takes."""
    if asked is not None:
        path, version = named(asked)
        if not lock.takes(_short(version)):
            raise UserError(
                f"{lock.name} {lock.version} needs Python {lock.pythons}, and {asked} is Python {version}; "
                "name another with --python."
            )
        return path
    if lock.takes(sys.version_info[:2]):
        return sys.executable
    for candidate in _candidates(lock):
        answer = version_of(candidate)
        if answer is not None and lock.takes(_short(answer)):
            return candidate
    raise UserError(
        f"{lock.name} {lock.version} needs Python {lock.pythons}, and none was found: install one (by "
        f"`pyenv install 3.{lock.highest}`, say) or name it with --python PATH."
    )


def _candidates(lock: Lock) -> Iterator[str]:
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    for minor in range(min(lock.highest, 30), lock.lowest - 1, -1):
        if python := shutil.which(f"python3.{minor}"):
            yield python
        yield from sorted((str(path) for path in pyenv.glob(f"3.{minor}.*/bin/python")), reverse=True)


def _short(version: str) -> tuple[int, int]:
    major, minor, *_ = version.split(".")
    return int(major), int(minor)
