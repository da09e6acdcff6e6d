"""`python -m benchmarks.detection` prints the tables of change-points.md; `--plot FILE` draws its plot."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from benchmarks.detection.detectors import Detector, otava, otava_python, trainmark
from benchmarks.detection.plot import plot
from benchmarks.detection.score import Score, total
from benchmarks.detection.trial import SIZES, clean, followed, several, stepped
from trainmark.history.simulated import DRIFTING, MACHINES

# Otava with the p-value at which its alarms are about as rare as ours.
STRICT = 1e-7


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--histories", type=int, default=50)
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    detectors: dict[str, Detector] = {"Trainmark": trainmark}
    with ExitStack() as stack:
        if python := otava_python():
            detectors["Otava 0.8.0"] = stack.enter_context(otava(python))
            detectors[f"Otava, p ≤ {STRICT:g}"] = stack.enter_context(otava(python, max_pvalue=STRICT))
        results = {name: _scores(name, detector, options.histories) for name, detector in detectors.items()}
    if options.plot:
        options.plot.write_text(plot(results), encoding="utf-8")


Scores = dict[tuple[str, float], Score]


def _scores(name: str, detector: Detector, histories: int) -> Scores:
    """Measure one detector, printing each line of its table as it is known."""
    sizes = " | ".join(f"{100 * size:g} %" for size in SIZES)
    print(f"\n{name}\n\n| machine | alarms, online | {sizes} | alarms, whole |")
    print(f"|---|---:|{'---:|' * len(SIZES)}---:|", flush=True)
    scores: Scores = {}
    for machine in (*MACHINES, DRIFTING):
        scores[machine.name, 0.0] = clean(detector, machine, histories)
        for size in SIZES:
            scores[machine.name, size] = stepped(detector, machine, size, histories)
        _line(machine.name, [scores[machine.name, size] for size in (0.0, *SIZES)])
    names = [machine.name for machine in MACHINES]
    sums = [total([scores[machine, size] for machine in names]) for size in (0.0, *SIZES)]
    _line("all but drift", sums)
    for size, score in zip((0.0, *SIZES), sums, strict=True):
        scores["all", size] = score
    steps = several(detector, MACHINES[0], histories)
    print(
        f"\nfour steps in 200 points: {steps.rate:.0%} found, {steps.alarms} alarms in {steps.points} points"
    )
    for before in (12, 20, 30, 60):
        late = followed(detector, before, 0.02, 2 * histories)
        shares = ", ".join(f"{late.found_within(results):.0%} within {results}" for results in (3, 4, 5, 10))
        print(f"2 % after {before} results: {shares}", flush=True)
        scores[f"after {before}", 0.02] = late
    return scores


def _line(name: str, scores: Sequence[Score]) -> None:
    clean_score, *steps = scores
    cells = [f"{100 * score.rate:.0f} %" for score in steps]
    alarms = total(steps).alarms_per_1000
    print(f"| {name} | {clean_score.alarms_per_1000:.2f} | {' | '.join(cells)} | {alarms:.2f} |", flush=True)


if __name__ == "__main__":
    main()
