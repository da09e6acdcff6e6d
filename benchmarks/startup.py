"""How much longer than an empty Python the help takes: fresh processes in turn."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from benchmarks.row import Row, from_repeats

MOST_SECONDS = 0.3
EMPTY = [sys.executable, "-c", "pass"]
HELP = [str(Path(sys.executable).with_name("trainmark")), "--help"]


def measure(repeats: int = 25) -> list[Row]:
    _seconds(HELP)  # the first start compiles and reads from the disk
    pairs = [(_seconds(EMPTY), _seconds(HELP)) for _ in range(repeats)]
    return [
        from_repeats("startup: --help beyond an empty Python", [h - e for e, h in pairs], "s", MOST_SECONDS),
        from_repeats("startup: the empty Python", [empty for empty, _ in pairs], "s"),
    ]


def _seconds(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began
