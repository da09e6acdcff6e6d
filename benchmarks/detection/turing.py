"""`python -m benchmarks.detection.turing FOLDER`: the Turing Change Point Dataset, beside Otava.

Scores as van den Burg & Williams (2020) define them: F1 with a margin of 5 against all annotators, and the
covering of each annotator's segments. Series of one dimension are read, as throughputs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

from benchmarks.detection.detectors import Detector, otava, otava_python, trainmark_steps
from benchmarks.detection.score import MARGIN
from trainmark.measure.history.series import RunPoint

SECONDS_A_DAY = 86_400.0


def f1(annotated: Sequence[Iterable[int]], reported: Iterable[int]) -> float:
    """Return the F1 of the reported places; the start counts as a change for all, so that none is 0 ÷ 0."""
    places = {0, *reported}
    truths = [{0, *changes} for changes in annotated]
    precision = _matched(set().union(*truths), places) / len(places)
    recall = sum(_matched(truth, places) / len(truth) for truth in truths) / len(truths)
    return 2 * precision * recall / (precision + recall)


def covering(annotated: Sequence[Iterable[int]], reported: Iterable[int], n: int) -> float:
    """Return how well the segments cover those of each annotator (Arbeláez et al. 2011)."""
    parts = _segments(reported, n)
    return sum(_cover(_segments(changes, n), parts) for changes in annotated) / len(annotated)


def _matched(truth: set[int], places: set[int]) -> int:
    """Return how many true places have a reported one of their own within the margin."""
    rest, count = set(places), 0
    for change in sorted(truth):
        near = [place for place in rest if abs(place - change) <= MARGIN]
        if near:
            rest.remove(min(near, key=lambda place: abs(place - change)))
            count += 1
    return count


def _segments(changes: Iterable[int], n: int) -> list[range]:
    return [range(first, stop) for first, stop in pairwise(sorted({0, *changes, n}))]


def _cover(truth: list[range], parts: list[range]) -> float:
    return sum(len(part) * max(_jaccard(part, other) for other in parts) for part in truth) / truth[-1].stop


def _jaccard(one: range, other: range) -> float:
    common = max(0, min(one.stop, other.stop) - max(one.start, other.start))
    return common / (len(one) + len(other) - common)


def series(file: Path) -> list[RunPoint]:
    """Return the values of one file as points a day apart, gaps filled by the value before.

    Values that are not all positive are shifted by ten times their range: no throughput is below zero, and
    Otava's figures do not depend on it. Series of several dimensions give no points.
    """
    content = json.loads(file.read_text(encoding="utf-8"))
    if content["n_dim"] != 1:
        return []
    values: list[float] = []
    for raw in content["series"][0]["raw"]:
        values.append(float(raw) if isinstance(raw, int | float) else values[-1])
    shift = 0.0 if min(values) > 0 else 10 * (max(values) - min(values)) - min(values)
    return [
        RunPoint(str(index), index * SECONDS_A_DAY, (value + shift,)) for index, value in enumerate(values)
    ]


def main(folder: Path) -> None:
    annotations = json.loads((folder / "annotations.json").read_text(encoding="utf-8"))
    detectors: dict[str, Detector] = {
        "none": lambda points, stops: [[] for _ in stops],
        "Trainmark": trainmark_steps,
    }
    with ExitStack() as stack:
        if python := otava_python():
            detectors["Otava"] = stack.enter_context(otava(python))
        print(f"| series | {' | '.join(f'{name}: changes, F1, covering' for name in detectors)} |")
        sums: dict[str, list[tuple[float, float]]] = {name: [] for name in detectors}
        for file in sorted(folder.glob("datasets/*/*.json")):
            points, truth = series(file), list(annotations.get(file.stem, {}).values())
            if points and truth:
                cells = []
                for name, detector in detectors.items():
                    places = detector(points, [len(points)])[0]
                    scores = f1(truth, places), covering(truth, places, len(points))
                    sums[name].append(scores)
                    cells.append(f"{len(places)}, {scores[0]:.2f}, {scores[1]:.2f}")
                print(f"| {file.stem} | {' | '.join(cells)} |", flush=True)
        for name, values in sums.items():
            mean_f1, mean_covering = (sum(column) / len(values) for column in zip(*values, strict=True))
            print(
                f"{name}: mean F1 {mean_f1:.3f}, mean covering {mean_covering:.3f} over {len(values)} series"
            )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
