"""`python -m benchmarks.detection` prints the tables of change-points.md; `--plot FILE` draws its plot."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from benchmarks.detection.detectors import Detector, otava, otava_python, trainmark, trainmark_steps
from benchmarks.detection.plot import Scores, plot
from benchmarks.detection.score import Score, total
from benchmarks.detection.trial import SIZES, clean, drifting, followed, several, stepped
from trainmark.history.simulated import DRIFTING, MACHINES

BEFORE = (12, 20, 30, 60)
# Otava as it comes, and with the largest p-value at which it raises about as few alarms as Trainmark.
SETTINGS: dict[str, dict[str, float]] = {"Otava": {}, "Otava, p ≤ 1e-12": {"max_pvalue": 1e-12}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--histories", type=int, default=50, help="of 100 points, for each machine and size")
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    peers = {name: partial(_otavas, setting) for name, setting in SETTINGS.items()} if otava_python() else {}
    measurements: dict[str, Callable[[int], Scores]] = {"Trainmark": _ours, **peers}
    with ProcessPoolExecutor(len(measurements)) as pool:
        running = {name: pool.submit(work, options.histories) for name, work in measurements.items()}
        scores = {name: future.result() for name, future in running.items()}
    for name, values in scores.items():
        print("\n".join(_table(name, values)))
    sloped = drifting(2 * options.histories)
    print(
        f"\nTrainmark, {sloped.histories} histories that drift: {sloped.one} reported as one drift,"
        f" {sloped.covered} of their intervals hold the truth; {sloped.reports} reports in all"
    )
    if options.plot:
        options.plot.write_text(plot(scores), encoding="utf-8")


def _ours(histories: int) -> Scores:
    return _scores(trainmark, trainmark_steps, histories)


def _otavas(setting: Mapping[str, float], histories: int) -> Scores:
    python = otava_python()
    assert python is not None
    with otava(python, **setting) as detector:
        return _scores(detector, detector, histories)


def _scores(detector: Detector, on_drift: Detector, histories: int) -> Scores:
    """Measure one detector on every machine and every size of step; size 0 is the clean histories."""
    scores: Scores = {}
    for machine in (*MACHINES, DRIFTING):
        own = on_drift if machine is DRIFTING else detector
        scores[machine.name, 0.0] = clean(own, machine, histories)
        for size in SIZES:
            scores[machine.name, size] = stepped(own, machine, size, histories)
    for size in (0.0, *SIZES):
        scores["all but drift", size] = total([scores[machine.name, size] for machine in MACHINES])
    scores["several", 0.0] = several(detector, MACHINES[0], histories)
    for before in BEFORE:
        scores[f"after {before}", 0.02] = followed(detector, before, 0.02, 2 * histories)
    return scores


def _table(name: str, scores: Scores) -> list[str]:
    lines = [
        f"\n{name}\n",
        f"| machine | alarms, online | {' | '.join(f'{100 * size:g} %' for size in SIZES)} | alarms, whole |",
        f"|---|---:|{'---:|' * len(SIZES)}---:|",
    ]
    for machine in (*(machine.name for machine in (*MACHINES, DRIFTING)), "all but drift"):
        lines.append(_line(machine, [scores[machine, size] for size in (0.0, *SIZES)]))
    steps = scores["several", 0.0]
    lines.append(
        f"\nfour steps in 200 points: {steps.rate:.0%} found, {steps.alarms_per_1000:.2f} alarms in 1,000"
    )
    for before in BEFORE:
        late = scores[f"after {before}", 0.02]
        shares = ", ".join(f"{late.found_within(results):.0%} within {results}" for results in (3, 4, 5, 10))
        lines.append(f"2 % after {before} results: {shares}")
    return lines


def _line(name: str, scores: Sequence[Score]) -> str:
    clean_score, *steps = scores
    cells = " | ".join(f"{100 * score.rate:.0f} %" for score in steps)
    return f"| {name} | {clean_score.alarms_per_1000:.2f} | {cells} | {total(steps).alarms_per_1000:.2f} |"


if __name__ == "__main__":
    main()
