"""This checkout against another one of Trainmark, turn by turn on this machine: report, index, `run quick`.

BASELINE=../trainmark-0.1.0 python -m benchmarks against
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.row import Row, from_repeats

HERE = Path(__file__).resolve().parents[1]
HIGHEST_RATIO = 1.02
TRIALS_A_CASE = 50

Seconds = dict[str, float]


def measure(cases: int = 200, reports: int = 7, quick_runs: int = 3) -> list[Row]:
    named = os.environ.get("BASELINE")
    if not named:
        print("against: name another checkout with BASELINE=FOLDER to compare this one with it")
        return []
    before = Path(named).resolve()
    with tempfile.TemporaryDirectory() as folder:
        # Written by the other: a newer version reads what an older one wrote.
        write = f"from benchmarks.trials import *; write_run(Path({folder!r}), {cases}, {TRIALS_A_CASE})"
        subprocess.run(
            [sys.executable, "-c", write],
            cwd=before,
            env={**os.environ, "PYTHONPATH": str(before / "src")},
            check=True,
        )
        ratios = {
            **_ratios(before, reports, lambda tree: _report(tree, folder)),
            **_ratios(before, quick_runs, lambda tree: _quick(tree, folder)),
        }
    return [
        from_repeats(f"against: {part} ÷ the other's", values, "×", HIGHEST_RATIO)
        for part, values in ratios.items()
    ]


def _ratios(before: Path, repeats: int, work: Callable[[Path], Seconds]) -> dict[str, list[float]]:
    """This one's seconds over the other's, each of them first in every second pair."""
    ratios: dict[str, list[float]] = {}
    for repeat in range(repeats):
        new, old = (work(HERE), work(before)) if repeat % 2 else tuple(reversed((work(before), work(HERE))))
        for part in old:
            ratios.setdefault(part, []).append(new[part] / old[part])
    return ratios


def _report(tree: Path, runs: str) -> Seconds:
    output, _, processor = _timed(tree, tree, "benchmarks.report", runs)
    seconds: Seconds = json.loads(output)["seconds"]
    index = seconds.pop("index")
    return {"index": index, "report": sum(seconds.values()), "index and report, CPU time": processor}


def _quick(tree: Path, runs: str) -> Seconds:
    _, wall, processor = _timed(
        tree, Path(runs), "trainmark", "run", "quick", "--runs", f"{runs}/{tree.name}"
    )
    return {"`run quick`": wall, "`run quick`, CPU time": processor}


def _timed(tree: Path, folder: Path, module: str, *words: str) -> tuple[str, float, float]:
    """Return what a module of that tree prints, its wall time, and the processor time of all its processes.

    Processor time hardly feels what else the machine does.
    """
    before, began = _processor_seconds(), time.perf_counter()
    command = [sys.executable, "-m", module, *words]
    environment = {**os.environ, "PYTHONPATH": str(tree / "src")}
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
        text=True,
    )
    return done.stdout, time.perf_counter() - began, _processor_seconds() - before


def _processor_seconds() -> float:
    """Of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
