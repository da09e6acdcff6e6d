"""Trainmark's figure against the stopwatch, over the figure's window."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

MOST_APART = 0.02
# Of the machine and of so short a run; they say nothing about how steps and samples were seen.
OF_THE_MACHINE = frozenset(
    [
        "few-trials",
        "noisy-trials",
        "host-busy",
        "throttled",
        "device-shared",
        "never-settled",
        "warmup-past-window",
        "window-too-short",
        "data-bound",
        "nan-loss",
        "loss-not-falling",
        "straggler",
        "host-clock",
    ]
)


@dataclass(frozen=True)
class Watch:
    """What the stopwatch of one process wrote: when passes ended, and when a model was evaluated."""

    passes: tuple[float, ...]
    pauses: tuple[tuple[float, float], ...]


def read_watch(file: Path) -> Watch:
    passes: list[float] = []
    pauses: list[tuple[float, float]] = []
    evaluating: float | None = None
    for line in file.read_text(encoding="utf-8").splitlines():
        kind, time = line.split()
        if kind == "pass":
            passes.append(float(time))
        elif kind == "eval":
            evaluating = float(time) if evaluating is None else evaluating
        elif evaluating is not None:
            pauses.append((evaluating, float(time)))
            evaluating = None
    return Watch(tuple(passes), tuple(pauses))


def rate(
    watch: Watch, window: tuple[float, float], passes_a_step: int, samples: Callable[[int], float]
) -> float | None:
    """Samples a second from the last step end before the window to the last one in it; None without steps.

    Evaluations are left out. `samples(number)` is of the step of this number since the program began.
    """
    ends = watch.passes[passes_a_step - 1 :: passes_a_step]
    before, stop = (bisect_right(ends, moment) for moment in window)
    first = max(0, before - 1)
    if stop - first < 2:
        return None
    begin, end = ends[first], ends[stop - 1]
    paused = sum(max(0.0, min(end, till) - max(begin, since)) for since, till in watch.pauses)
    return sum(map(samples, range(first + 1, stop))) / (end - begin - paused)


def verdict(ratio: float | None, doubts: Sequence[str], refusal: str) -> str:
    """One word, or two, for a row: what is to be mended begins with WRONG."""
    if refusal:
        return "refused, says what to give" if "--" in refusal else "WRONG: refused without a remedy"
    if ratio is None:
        return "not compared"
    if abs(ratio - 1) <= MOST_APART:
        return "agrees"
    telling = [code for code in doubts if code not in OF_THE_MACHINE]
    return f"doubted: {', '.join(telling)}" if telling else "WRONG without a doubt"
