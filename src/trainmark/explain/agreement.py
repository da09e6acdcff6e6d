"""Whether a profile can be believed: its steps against those timed without the profiler; throttled clocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import accumulate, pairwise
from statistics import fmean

from trainmark.events import DeviceSample
from trainmark.events.schema import is_host
from trainmark.explain.explanation import Agreement, IdleTime
from trainmark.explain.profile import Profile
from trainmark.measure.figure_doubts import throttle_reasons
from trainmark.view.message import Message, _, _n

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
        return Agreement(0.0, None, _("The profile has no complete step: profile more steps."))
    total = profile.steps[-1].end - profile.steps[0].start
    profiled = total / count / 1e9
    measured = fmean(unprofiled_seconds) if unprofiled_seconds else None
    if profile.lost:
        lost = _n(
            profile.lost,
            "The profiler lost 1 record: profile fewer steps.",
            "The profiler lost {count} records: profile fewer steps.",
        )
        return Agreement(profiled, measured, lost)
    if not len(profile.spans):
        return Agreement(profiled, measured, _("The profile has no records of the device."))
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


def reference_note(beside: float, measured: float) -> Message:
    """Say that the steps beside the pass are not what its table adds up to, with both times."""
    return _(
        "Beside the profiled steps the host was slower ({beside} ms a step) than when the case was measured"
        " ({measured} ms): the table is of the measured step.",
        beside=f"{beside * 1e3:.2f}",
        measured=f"{measured * 1e3:.2f}",
    )


def _refusal(profiled: float, measured: float) -> Message:
    difference = profiled / measured - 1
    return _(
        "The profiled step took {difference} {direction} than the steps timed without the profiler"
        " ({profiled} against {measured} ms), more than {most}: its shares would not be those of the"
        " real step.",
        difference=f"{abs(difference):.1%}",
        direction=_("longer") if difference > 0 else _("shorter"),
        profiled=f"{profiled * 1e3:.2f}",
        measured=f"{measured * 1e3:.2f}",
        most=f"{MOST_DIFFERENCE:.0%}",
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


# Below this the device waits rather than works, and its clock says nothing.
BUSY = 0.1
# A clock within this share of the highest is what a device under load does.
CLOCK_SHARE_UNREMARKABLE = 0.95


@dataclass(frozen=True)
class Slowdown:
    """`clock_share` is the mean SM clock against the highest, `throttled` the share of samples with a reason.

    `lost` is the time, in nanoseconds over the profiled steps, that arithmetic-bound classes would not have
    taken at the highest clock; None where no class is known to be bound by arithmetic.
    """

    device: str
    clock_share: float
    throttled: float
    reasons: tuple[str, ...]
    lost: int | None
    sentence: str


def slowdown(samples: Sequence[DeviceSample], arithmetic: int | None = None) -> Slowdown | None:
    """Return the slowdown of the device whose clock was lowest; None where clocks were as they should be.

    `arithmetic` is the time of the classes that arithmetic bounds, in nanoseconds: it grows as 1 ÷ clock.
    """
    devices = sorted({sample.device for sample in samples if not is_host(sample.device)})
    slowdowns = (_of_device([s for s in samples if s.device == device], arithmetic) for device in devices)
    return min(
        (slow for slow in slowdowns if slow is not None), key=lambda slow: slow.clock_share, default=None
    )


def _of_device(samples: Sequence[DeviceSample], arithmetic: int | None) -> Slowdown | None:
    working = [s for s in samples if s.clock_mhz and (s.utilisation is None or s.utilisation >= BUSY)]
    if not working:
        return None
    clocks = [float(s.clock_mhz or 0) for s in working]
    highest = max(*(float(s.clock_max_mhz or 0) for s in working), *clocks)
    # Work is done in proportion to the clock: the mean clock is that of equal spans of time.
    clock = sum(clocks) / len(clocks)
    share = clock / highest
    # A power limit that costs little is no doubt of a figure, but here it is the reason all the same.
    reasons = Counter(reason for s in working for reason in (throttle_reasons(s) or _limits(s, highest)))
    throttled = sum(bool(throttle_reasons(s) or _limits(s, highest)) for s in working) / len(working)
    if share >= CLOCK_SHARE_UNREMARKABLE:
        return None
    named = tuple(reason for reason, _count in reasons.most_common())
    lost = None if arithmetic is None else round(arithmetic * (1 - share))
    return Slowdown(
        samples[0].device, share, throttled, named, lost, _sentence(working, clock, highest, named, throttled)
    )


def _limits(sample: DeviceSample, highest: float) -> set[str]:
    lowered = (sample.clock_mhz or highest) < CLOCK_SHARE_UNREMARKABLE * highest
    return set(sample.throttle) - {"idle", "none"} if lowered else set()


def _sentence(
    working: Sequence[DeviceSample], clock: float, highest: float, reasons: Sequence[str], throttled: float
) -> Message:
    clauses = [
        _(
            "{device}: SM clock {clock} of {highest} MHz on average",
            device=working[0].device,
            clock=f"{clock:,.0f}",
            highest=f"{highest:,.0f}",
        ),
        _("without a reason from the driver: clocks may be locked (nvidia-smi -q -d CLOCK)"),
    ]
    if reasons:
        clauses[1] = _(
            "throttled in {share} of {count} samples ({reasons})",
            share=f"{throttled:.0%}",
            count=len(working),
            reasons=", ".join(reasons),
        )
    powers = [s.power_watts for s in working if s.power_watts is not None]
    temperatures = [s.temperature_c for s in working if s.temperature_c is not None]
    if powers:
        clauses.append(_("{power} W", power=f"{sum(powers) / len(powers):,.0f}"))
    if temperatures:
        clauses.append(_("{temperature} °C at most", temperature=f"{max(temperatures):.0f}"))
    return _("{clauses}.", clauses=reduce(_followed, clauses))


def _followed(first: Message, more: Message) -> Message:
    return _("{first}, {more}", first=first, more=more)
