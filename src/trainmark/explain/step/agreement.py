"""Whether a profile can be believed: its steps against those timed without the profiler."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

import numpy as np

from trainmark.explain.explanation import Agreement
from trainmark.explain.profile.model import Profile
from trainmark.explain.step.breakdown import unions

MOST_DIFFERENCE = 0.03  # of the step timed without the profiler
NEARLY_ALL = 0.9  # of the launches, replayed by CUDA graphs


def agreement(
    profile: Profile, unprofiled_seconds: Sequence[float], busy_ns: int, steps: int | None = None
) -> Agreement:
    """Compare the mean profiled step with the median of the others, and refuse shares where they differ.

    `busy_ns` is how long the device was busy in all steps. Without unprofiled steps, as in a trace from
    elsewhere, there is nothing to compare with, and nothing is refused but lost records.

    Kernels keep their duration when a CUDA graph is traced, since the hardware takes their times, but the gaps
    between a graph's nodes grow. Where that explains the whole difference, the step is the measured one.
    """
    count = steps or len(profile.steps)
    if not profile.steps or not count:
        return Agreement(0.0, None, "The profile has no complete step: profile more steps.")
    total = profile.steps[-1].end - profile.steps[0].start
    profiled = total / count / 1e9
    measured = median(unprofiled_seconds) if unprofiled_seconds else None
    if profile.lost:
        records = "record" if profile.lost == 1 else f"{profile.lost:,} records"
        lost = "a record" if profile.lost == 1 else records
        return Agreement(profiled, measured, f"The profiler lost {lost}: profile fewer steps.")
    if not len(profile.spans):
        return Agreement(profiled, measured, "The profile has no records of the device.")
    if not measured or abs(profiled / measured - 1) <= MOST_DIFFERENCE:
        return Agreement(profiled, measured)
    excess = total - round(measured * count * 1e9)
    if _graph_share(profile) >= NEARLY_ALL and busy_ns <= total - excess and 0 < excess <= graph_gaps(profile):
        return Agreement(profiled, measured, corrected=True)
    return Agreement(profiled, measured, _refusal(profiled, measured))


def _refusal(profiled: float, measured: float) -> str:
    difference = profiled / measured - 1
    direction = "longer" if difference > 0 else "shorter"
    return (
        f"The profiled step took {abs(difference):.1%} {direction} than the steps timed without the profiler "
        f"({profiled * 1e3:.2f} against {measured * 1e3:.2f} ms), more than {MOST_DIFFERENCE:.0%}: "
        "its shares would not be those of the real step."
    )


def _graph_share(profile: Profile) -> float:
    return float(np.mean(profile.spans.in_graph)) if len(profile.spans) else 0.0


def graph_gaps(profile: Profile) -> int:
    """Return the time in which the device was idle between two nodes of one graph launch, in all steps."""
    begin, end = profile.steps[0].start, profile.steps[-1].end
    spans = profile.spans
    start, stop = np.clip(spans.start, begin, end), np.clip(spans.end, begin, end)
    graph_start, graph_stop = _launches(profile)
    busy_start, busy_stop = unions(start, stop)
    gap_start, gap_stop = busy_stop[:-1], busy_start[1:]
    if not len(graph_start) or not len(gap_start):
        return 0
    launch = np.searchsorted(graph_start, gap_start, side="right") - 1
    within = (launch >= 0) & (gap_stop <= graph_stop[launch])
    return int((gap_stop - gap_start)[within].sum())


def _launches(profile: Profile) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], ...]:
    """Return where each graph launch begins and ends on the device, by start."""
    spans = profile.spans
    rows = np.flatnonzero(spans.in_graph & (spans.launch >= 0))
    if not len(rows):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    ids, index = np.unique(spans.launch[rows], return_inverse=True)
    start = np.full(len(ids), np.iinfo(np.int64).max)
    stop = np.full(len(ids), np.iinfo(np.int64).min)
    np.minimum.at(start, index, spans.start[rows])
    np.maximum.at(stop, index, spans.end[rows])
    order = np.argsort(start, kind="stable")
    return start[order], stop[order]
