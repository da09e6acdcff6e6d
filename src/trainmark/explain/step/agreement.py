"""Whether a profile can be believed: its steps against those timed without the profiler."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

import numpy as np
import numpy.typing as npt

from trainmark.explain.explanation import Agreement
from trainmark.explain.profile.model import Nanoseconds, Profile
from trainmark.explain.step.breakdown import Breakdown, unions

MOST_DIFFERENCE = 0.03  # of the step timed without the profiler
NEARLY_ALL = 0.9  # of the launches, replayed by CUDA graphs


def agreement(
    profile: Profile, unprofiled_seconds: Sequence[float], busy_ns: int, steps: int | None = None
) -> Agreement:
    """Compare the mean profiled step with the mean of the others, and refuse shares where they differ.

    Means, since the steps of a program that waits for its loader's workers are long and short in turns.
    `busy_ns` is how long the device was busy in all steps. Without unprofiled steps, as in a trace from
    elsewhere, there is nothing to compare with, and nothing is refused but lost records.

    Kernels keep their duration when a CUDA graph is traced, since the hardware takes their times, but the
    gaps between a graph's nodes grow. Where that explains the whole difference, the step is the measured one.
    """
    count = steps or len(profile.steps)
    if not profile.steps or not count:
        return Agreement(0.0, None, "The profile has no complete step: profile more steps.")
    total = profile.steps[-1].end - profile.steps[0].start
    profiled = total / count / 1e9
    measured = fmean(unprofiled_seconds) if unprofiled_seconds else None
    if profile.lost:
        lost = "1 record" if profile.lost == 1 else f"{profile.lost:,} records"
        return Agreement(profiled, measured, f"The profiler lost {lost}: profile fewer steps.")
    if not len(profile.spans):
        return Agreement(profiled, measured, "The profile has no records of the device.")
    if not measured or abs(profiled / measured - 1) <= MOST_DIFFERENCE:
        return Agreement(profiled, measured)
    excess = total - round(measured * count * 1e9)
    slack = MOST_DIFFERENCE * (total - excess)
    replayed = _graph_share(profile) >= NEARLY_ALL
    if replayed and busy_ns <= total - excess + slack and 0 < excess <= sum(graph_gaps(profile)) + slack:
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


def graph_gaps(profile: Profile) -> tuple[int, ...]:
    """Return the gaps between two nodes of one graph launch, in which the device was idle, of all steps."""
    start, stop = _gaps(profile)
    within = in_graph_launch(profile, start, stop)
    return tuple((stop - start)[within].tolist())


def _gaps(profile: Profile) -> tuple[Nanoseconds, Nanoseconds]:
    begin, end = profile.steps[0].start, profile.steps[-1].end
    busy_start, busy_stop = unions(
        np.clip(profile.spans.start, begin, end), np.clip(profile.spans.end, begin, end)
    )
    return busy_stop[:-1], busy_start[1:]


def in_graph_launch(profile: Profile, start: Nanoseconds, stop: Nanoseconds) -> npt.NDArray[np.bool_]:
    """Say which gaps lie between two nodes of one graph launch."""
    launch_start, launch_stop = _launches(profile)
    if not len(launch_start):
        return np.zeros(len(start), bool)
    launch = np.searchsorted(launch_start, start, side="right") - 1
    return np.asarray((launch >= 0) & (stop <= launch_stop[launch]))


def corrected_breakdown(parts: Breakdown, profile: Profile, measured: float) -> Breakdown:
    """Return the breakdown of a step that takes `measured` seconds: gaps inside graph launches shrink.

    They shrink in proportion, each from its end, until all adds up to the measured steps; where the kernels
    alone take longer than that, the gaps vanish and the kernels are believed.
    """
    start = np.array([gap.start for gap in parts.gaps], np.int64)
    stop = np.array([gap.end for gap in parts.gaps], np.int64)
    within = in_graph_launch(profile, start, stop)
    lasting = np.where(within, stop - start, 0)
    whole = int(lasting.sum())
    excess = min(parts.total - round(measured * len(profile.steps) * 1e9), whole)
    if excess <= 0:
        return parts
    # Cumulative sums rounded down: the parts taken away add up to the excess exactly.
    cumulated = [total * excess // whole for total in np.cumsum(lasting).tolist()]
    taken = np.diff(np.array([0, *cumulated], np.int64))
    gaps = tuple(
        gap._replace(end=gap.end - less)
        for gap, less in zip(parts.gaps, taken.tolist(), strict=True)
        if gap.nanoseconds > less
    )
    return replace(parts, total=parts.total - excess, gaps=gaps)


def _launches(profile: Profile) -> tuple[Nanoseconds, Nanoseconds]:
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
