"""How often a whole bisection takes a wrong half, over noise of several shapes, and what it costs."""

from __future__ import annotations

import statistics

from benchmarks.row import Row
from benchmarks.simulated_bisections import Outcome, bimodal, bisect, heavy_tailed, normal

MOST_WRONG = 0.05
CHANGE = 0.97
SHAPES = {
    "normal, 1 %": (normal(0.01), {}),
    "normal, 2 %": (normal(0.02), {}),
    "Student's t3, 1 %": (heavy_tailed(0.01), {}),
    "two clock levels 5 % apart": (bimodal(0.005), {}),
    "normal, 1 %, a fifth of the items skipped": (normal(0.01), {"skipped": 0.2}),
    "normal, 1 %, drift of 0.1 % a pair": (normal(0.01), {"drift": 0.001}),
}


def measure(bisections: int = 100, lengths: tuple[int, ...] = (8, 200)) -> list[Row]:
    rows = []
    for shape, (noise, more) in SHAPES.items():
        for length in lengths:
            outcomes = [bisect(length, CHANGE, noise, seed, **more) for seed in range(bisections)]
            what = f"bisection: {length} items, noise {shape}"
            rows.append(Row(f"{what}: wrong half", _share(outcomes), "of all", MOST_WRONG))
            rows.append(Row(f"{what}: culprit named", _named(outcomes), "of all"))
            rows.append(Row(f"{what}: pairs", statistics.mean(end.pairs for end in outcomes), ""))
    return rows


def _share(outcomes: list[Outcome]) -> float:
    return statistics.mean(outcome.wrong for outcome in outcomes)


def _named(outcomes: list[Outcome]) -> float:
    """Return the share that ended at the culprit alone; the others left several suspects or did not begin."""
    return statistics.mean(
        outcome.suspects is not None and list(outcome.suspects) == [outcome.culprit] for outcome in outcomes
    )
