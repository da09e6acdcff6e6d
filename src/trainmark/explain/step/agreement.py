"""Whether a profile can be believed: its steps against those timed without the profiler."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from statistics import fmean

from trainmark.explain.explanation import Agreement, IdleTime
from trainmark.explain.profile.model import Profile

MOST_DIFFERENCE = 0.03  # of the step timed without the profiler
LOADER = "loader"  # reads and decodes as long with the profiler as without it


def agreement(
    profile: Profile, unprofiled_seconds: Sequence[float], idle: Sequence[IdleTime], steps: int | None = None
) -> Agreement:
    """Compare the mean profiled step with the mean of the others, and refuse shares where they differ.

    Means, since the steps of a program that waits for its loader's workers are long and short in turns.
    Without unprofiled steps, as in a trace from elsewhere, there is nothing to compare with, and nothing is
    refused but lost records.

    On a GPU the hardware takes the times of kernels, which are the same with and without the profiler. What
    tracing makes longer is the gaps between them: the host is slower to launch, and the nodes of a CUDA graph
    start later. As far as gaps explain a longer step, the step is the measured one.
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
    if not measured:
        return Agreement(profiled, None)
    wider = 0 if profile.device == "cpu" else widened(idle, total - round(measured * count * 1e9))
    if abs((total - wider) / count / 1e9 / measured - 1) <= MOST_DIFFERENCE:
        return Agreement(profiled, measured, corrected=wider > 0)
    return Agreement(profiled, measured, _refusal(profiled, measured))


def reference_steps(
    beside: Sequence[float], measured: float | None, device: str, busy: float
) -> tuple[float, ...]:
    """Return the steps to compare with: those beside the pass, or the mean of those measured before.

    CUPTI stays attached to the program after the first pass, and slows a host that the device waits for:
    GPT-2 at batch 2 took 13.8 ms a step before, and 20.2 ms after it (NVIDIA H200; pytorch/pytorch#144455).
    Where the device is busy for longer than a measured step, it is slower itself by now, as in the pass.
    """
    if device == "cpu" or not beside or measured is None:
        return tuple(beside)
    slowed = fmean(beside) > (1 + MOST_DIFFERENCE) * measured
    return (measured,) if slowed and busy <= measured else tuple(beside)


def reference_note(beside: float, measured: float) -> str:
    """Say that the steps beside the pass are not what its table adds up to, with both times."""
    return (
        f"Beside the profiled steps the host was slower ({beside * 1e3:.2f} ms a step) than when the case "
        f"was measured ({measured * 1e3:.2f} ms): the table is of the measured step."
    )


def _refusal(profiled: float, measured: float) -> str:
    difference = profiled / measured - 1
    direction = "longer" if difference > 0 else "shorter"
    return (
        f"The profiled step took {abs(difference):.1%} {direction} than the steps timed without the profiler "
        f"({profiled * 1e3:.2f} against {measured * 1e3:.2f} ms), more than {MOST_DIFFERENCE:.0%}: "
        "its shares would not be those of the real step."
    )


def widened(idle: Sequence[IdleTime], excess: int) -> int:
    """Return how many of these nanoseconds, by which profiled steps are longer, gaps can explain."""
    return max(0, min(excess, sum(row.nanoseconds for row in idle if row.cause != LOADER)))


def corrected_idle(idle: Sequence[IdleTime], excess: int) -> tuple[IdleTime, ...]:
    """Return idle times without what tracing added to the gaps, the longest first.

    All causes but the loader shrink in proportion; what is taken adds up to `widened` exactly.
    """
    taken = widened(idle, excess)
    whole = sum(row.nanoseconds for row in idle if row.cause != LOADER)
    if not taken:
        return tuple(idle)
    # Cumulative sums rounded down: the parts add up to the whole.
    sums = accumulate((0 if row.cause == LOADER else row.nanoseconds for row in idle), initial=0)
    less = [after - before for before, after in pairwise(total * taken // whole for total in sums)]
    rows = (
        replace(row, nanoseconds=row.nanoseconds - part)
        for row, part in zip(idle, less, strict=True)
        if row.nanoseconds > part
    )
    return tuple(sorted(rows, key=lambda row: (-row.nanoseconds, row.cause)))
