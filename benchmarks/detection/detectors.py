"""The detectors that are compared: given a history and the lengths to look at, what each reports."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from trainmark.measure.history.changes import changes, drifts
from trainmark.measure.history.series import RunPoint

Detector = Callable[[Sequence[RunPoint], Sequence[int]], list[list[int]]]
ROOT = Path(__file__).resolve().parents[2]


def trainmark(points: Sequence[RunPoint], stops: Sequence[int]) -> list[list[int]]:
    """Return the places of changes, and of drifts their first point: where there is none, both are alarms."""
    looks = []
    for stop in stops:
        steps = changes(points[:stop])
        sloped = drifts(points[:stop], steps)
        looks.append([change.index for change in steps] + [drift.first for drift in sloped])
    return looks


def trainmark_steps(points: Sequence[RunPoint], stops: Sequence[int]) -> list[list[int]]:
    """Return the places of changes alone, for histories that do drift."""
    return [[change.index for change in changes(points[:stop])] for stop in stops]


def otava_python() -> Path | None:
    """Return the interpreter that has Apache Otava: OTAVA_PYTHON or that of `make otava`."""
    named = os.environ.get("OTAVA_PYTHON")
    python = Path(named) if named else ROOT / ".venv-otava" / "bin" / "python"
    return python if python.exists() else None


@contextmanager
def otava(python: Path, **options: float) -> Iterator[Detector]:
    """Apache Otava in a process of its own; it knows no trials, so it is given their medians."""
    # Its t-test warns of segments of one point, by the thousand.
    command = [str(python), "-W", "ignore", str(Path(__file__).with_name("otava_peer.py"))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as peer:
        assert peer.stdin is not None and peer.stdout is not None
        questions, answers = peer.stdin, peer.stdout

        def detect(points: Sequence[RunPoint], stops: Sequence[int]) -> list[list[int]]:
            values = [point.median for point in points]
            questions.write(json.dumps({"values": values, "stops": list(stops), "options": options}) + "\n")
            questions.flush()
            looks: list[list[int]] = json.loads(answers.readline())
            return looks

        try:
            yield detect
        finally:
            questions.close()
