"""Time lost to throttled clocks: power, temperature, a setting; from the samples of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from trainmark.events import DeviceSample
from trainmark.events.schema import is_host
from trainmark.measure.figure_doubts import throttle_reasons

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
    named = tuple(reason for reason, _ in reasons.most_common())
    lost = None if arithmetic is None else round(arithmetic * (1 - share))
    return Slowdown(
        samples[0].device, share, throttled, named, lost, _sentence(working, clock, highest, named, throttled)
    )


def _limits(sample: DeviceSample, highest: float) -> set[str]:
    lowered = (sample.clock_mhz or highest) < CLOCK_SHARE_UNREMARKABLE * highest
    return set(sample.throttle) - {"idle", "none"} if lowered else set()


def _sentence(
    working: Sequence[DeviceSample], clock: float, highest: float, reasons: Sequence[str], throttled: float
) -> str:
    text = f"{working[0].device}: SM clock {clock:,.0f} of {highest:,.0f} MHz on average"
    if reasons:
        text += f", throttled in {throttled:.0%} of {len(working)} samples ({', '.join(reasons)})"
    else:
        text += ", without a reason from the driver: clocks may be locked (nvidia-smi -q -d CLOCK)"
    powers = [s.power_watts for s in working if s.power_watts is not None]
    temperatures = [s.temperature_c for s in working if s.temperature_c is not None]
    if powers:
        text += f", {sum(powers) / len(powers):,.0f} W"
    if temperatures:
        text += f", {max(temperatures):.0f} °C at most"
    return text + "."
