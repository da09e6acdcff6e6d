"""`python -m benchmarks.detection` prints the tables of change-points.md; `--plot FILE` draws its plot."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from benchmarks.detection.detectors import Detector, otava, otava_python, trainmark, trainmark_steps
from benchmarks.detection.plot import Scores, plot
from benchmarks.detection.score import Score, total
from benchmarks.detection.trial import SIZES, clean, drifting, followed, several, stepped
from benchmarks.simulated_histories import DRIFTING, MACHINES, Machine

BEFORE = (12, 20, 30, 60)
WITHIN = (3, 4, 5, 10)
# Trainmark, Otava as it comes, and with the p-value at which it raises about as few alarms as Trainmark.
SETTINGS: dict[str, dict[str, float] | None] = {
    "Trainmark": None,
    "Otava": {},
    "Otava, p ≤ 1e-15": {"max_pvalue": 1e-15},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--histories", type=int, default=50, help="of 100 points, for each machine and size")
    parser.add_argument("--jobs", type=int, default=2, help="processes at once")
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    settings = {name: setting for name, setting in SETTINGS.items() if setting is None or otava_python()}
    with ProcessPoolExecutor(options.jobs) as pool:
        running = [
            (name, pool.submit(_part, setting, part, options.histories))
            for part in (*MACHINES, DRIFTING, None)
            for name, setting in settings.items()
        ]
        scores: dict[str, Scores] = {name: {} for name in settings}
        for name, future in running:
            scores[name].update(future.result())
    for own in scores.values():
        for size in (0.0, *SIZES):
            own["all but drift", size] = total([own[machine.name, size] for machine in MACHINES])
    print("\n".join([*_table(scores), *_delays(scores), ""]))
    for name, values in scores.items():
        print(_several(name, values))
    sloped = drifting(2 * options.histories)
    print(
        f"\nTrainmark, {sloped.histories} histories that drift: {sloped.one} reported as one drift,"
        f" {sloped.covered} of their intervals hold the truth; {sloped.reports} reports in all"
    )
    if options.plot:
        options.plot.write_text(plot(scores), encoding="utf-8")


def _part(setting: Mapping[str, float] | None, machine: Machine | None, histories: int) -> Scores:
    """Measure Otava, or Trainmark where `setting` is None, on one machine, or where that is None the rest."""
    if setting is None:
        ours = trainmark_steps if machine is DRIFTING else trainmark
        return _scores(ours, machine, histories) if machine else _further(ours, histories)
    python = otava_python()
    assert python is not None
    with otava(python, **setting) as detector:
        return _scores(detector, machine, histories) if machine else _further(detector, histories)


def _scores(detector: Detector, machine: Machine, histories: int) -> Scores:
    """Measure every size of step; size 0 is the clean histories."""
    scores: Scores = {(machine.name, 0.0): clean(detector, machine, histories)}
    for size in SIZES:
        scores[machine.name, size] = stepped(detector, machine, size, histories)
    return scores


def _further(detector: Detector, histories: int) -> Scores:
    """Measure several steps in one history, and how soon a step is detected."""
    scores: Scores = {("several", 0.0): several(detector, MACHINES[0], histories)}
    for before in BEFORE:
        scores[f"after {before}", 0.02] = followed(detector, before, 0.02, 2 * histories)
    return scores


def _table(scores: dict[str, Scores]) -> list[str]:
    """Return the rows of every machine, one a detector."""
    lines = [
        f"| machine | detector | alarms, online | {' | '.join(f'{100 * size:g} %' for size in SIZES)} |"
        " alarms, whole |",
        f"|---|---|---:|{'---:|' * len(SIZES)}---:|",
    ]
    for machine in (*(machine.name for machine in (*MACHINES, DRIFTING)), "all but drift"):
        for index, (name, own) in enumerate(scores.items()):
            cells = _cells([own[machine, size] for size in (0.0, *SIZES)])
            lines.append(f"| {'' if index else machine} | {name} | {cells} |")
    return lines


def _cells(scores: Sequence[Score]) -> str:
    clean_score, *steps = scores
    shares = " | ".join(f"{100 * score.rate:.0f} %" for score in steps)
    return f"{clean_score.alarms_per_1000:.2f} | {shares} | {total(steps).alarms_per_1000:.2f}"


def _delays(scores: dict[str, Scores]) -> list[str]:
    """Return the share of steps of 2 % detected within so many results, a row a detector."""
    lines = [
        f"\n| results before the step | detector | {' | '.join(map(str, WITHIN))} |",
        f"|---|---|{'---:|' * len(WITHIN)}",
    ]
    for before in BEFORE:
        for index, (name, own) in enumerate(scores.items()):
            late = own[f"after {before}", 0.02]
            shares = " | ".join(f"{100 * late.found_within(results):.0f} %" for results in WITHIN)
            lines.append(f"| {'' if index else before} | {name} | {shares} |")
    return lines


def _several(name: str, scores: Scores) -> str:
    steps = scores["several", 0.0]
    alarms = f"{steps.alarms_per_1000:.2f} alarms in 1,000"
    return f"{name}, four steps in 200 points: {steps.rate:.0%} found, {alarms}"


if __name__ == "__main__":
    main()
