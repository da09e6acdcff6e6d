from __future__ import annotations

import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from sleeper import call, command, commit, write


@pytest.fixture(scope="session")
def program(tmp_path_factory) -> Path:
    """A git repository whose second commit sleeps 30 % longer, with a run of each commit and one more."""
    folder = tmp_path_factory.mktemp("program")
    write(folder, 0.008)
    commit(folder, "as it was")
    call(folder, "run", "suite.yaml", "--name", "before")
    call(folder, "run", "suite.yaml", "--name", "again")
    call(folder, "run", "suite.yaml", "--name", "threads", OMP_NUM_THREADS="2")
    write(folder, 0.0104)
    commit(folder, "slower")
    call(folder, "run", "suite.yaml", "--name", "after")
    return folder


@dataclass(frozen=True)
class Watched:
    folder: Path
    before_kill: list[Path]
    finish: subprocess.CompletedProcess[str]


def trials_of(watch: Path) -> list[Path]:
    return sorted(
        path
        for path in watch.glob("*/trials/*/*")
        if path.name.isdecimal() and (path / "figure.json").exists()
    )


@pytest.fixture(scope="session")
def watched(program) -> Watched:
    """A watch over the two commits that was killed after its third trial, and resumed."""
    watch = program / "runs" / "watched"
    words = command("watch", "before", "after", "--name", "watched", "--matters", "5%")
    process = subprocess.Popen(words, cwd=program, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    limit = time.monotonic() + 120
    while len(trials_of(watch)) < 3 and time.monotonic() < limit and process.poll() is None:
        time.sleep(0.02)
    process.kill()
    process.communicate()
    finished = trials_of(watch)
    finish = call(
        program, "watch", "--resume", "--name", "watched", "--junit", "w.xml", "--hook-file", "w.json"
    )
    return Watched(watch, finished, finish)
