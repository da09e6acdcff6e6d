"""A mutant, the tables that list them, and a copy of the package to plant them in."""

from __future__ import annotations

import compileall
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from importlib.util import cache_from_source
from multiprocessing import get_context
from pathlib import Path

import click  # noqa: F401
import hypothesis  # noqa: F401
import numpy  # noqa: F401
import pytest
import yaml

HERE = Path(__file__).parent
ROOT = HERE.parent
# A mutant that makes a test loop forever is killed by this; far above what any listed test takes.
SECONDS = 300


class Status(str, Enum):
    KILLED = "killed"
    SURVIVED = "survived"
    STALE = "does not apply"
    UNSOUND = "its tests fail without it"


@dataclass(frozen=True)
class Mutant:
    """In `file`, the text `before`, which stands there once, becomes `after`; `tests` should fail by that."""

    file: str
    before: str
    after: str
    tests: tuple[str, ...]

    @property
    def room(self) -> str:
        return self.file.partition("/")[0].removesuffix(".py")

    @property
    def edit(self) -> tuple[str, str]:
        return self.before, self.after


def listed() -> Iterator[Mutant]:
    """All mutants of all tables: {file under src/trainmark: {tests: …, mutants: [[before, after], …]}}."""
    for table in sorted(HERE.glob("*.yaml")):
        for file, entry in yaml.safe_load(table.read_text(encoding="utf-8")).items():
            for before, after, *own_tests in entry["mutants"]:
                yield Mutant(file, str(before), str(after), tuple(own_tests or entry["tests"]))


class Package:
    """A copy of `src` that the tests import in place of the working tree's."""

    def __init__(self, folder: Path) -> None:
        self._source = folder / "src"
        shutil.copytree(ROOT / "src", self._source, ignore=shutil.ignore_patterns("__pycache__"))
        compileall.compile_dir(self._source, quiet=2)
        self._passes = lru_cache(maxsize=None)(self._pass)

    def judge(self, mutant: Mutant) -> Status:
        path = self._source / "trainmark" / mutant.file
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        if text.count(mutant.before) != 1 or mutant.before == mutant.after:
            return Status.STALE
        if not self._passes(mutant.tests):
            return Status.UNSOUND
        try:
            self._write(path, text.replace(mutant.before, mutant.after))
            return Status.SURVIVED if self._pass(mutant.tests) else Status.KILLED
        finally:
            self._write(path, text)

    def _pass(self, tests: tuple[str, ...]) -> bool:
        """Run the tests in a fork of this process, which has imported all that is not under test."""
        process = get_context("fork").Process(target=_run, args=(self._source, tests))
        process.start()
        process.join(SECONDS)
        if process.exitcode is None:
            os.killpg(process.pid or 0, signal.SIGKILL)
            process.join()
        return process.exitcode == 0

    @staticmethod
    def _write(path: Path, text: str) -> None:
        if path.suffix == ".py":
            Path(cache_from_source(str(path))).unlink(missing_ok=True)
        path.write_text(text, encoding="utf-8")


def _run(source: Path, tests: tuple[str, ...]) -> None:
    """Exit as pytest does; a word that begins with `-` is an option of pytest, the others are files."""
    os.setsid()
    os.chdir(ROOT)
    os.environ.update(PYTHONPATH=str(source), CI="1")
    sys.path.insert(0, str(source))
    for number in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), number)
    words = [word if word.startswith("-") else str(ROOT / "tests" / word) for word in tests]
    options = ["-x", "-q", "-p", "no:cacheprovider", "-W", "ignore:Module already imported"]
    sys.exit(pytest.main([*options, *words]))
