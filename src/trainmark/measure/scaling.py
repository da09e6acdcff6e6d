"""How a case scales from few devices to many, and where what is missing to linear scaling went."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from enum import Enum

from trainmark.measure.comparison import result_ratio
from trainmark.measure.figure import ONE, Ratio, Result
from trainmark.measure.key import Key


class ScalingKind(str, Enum):
    """What stays the same while devices are added: the batch of a device, or that of all together."""

    WEAK = "weak"
    STRONG = "strong"


@dataclass(frozen=True)
class ScalingLoss:
    """The shares of linear scaling that are lost; with the efficiency they add up to one.

    A negative share is a gain: the part takes less time of a sample than on the fewest devices.
    """

    communication: float
    straggling: float
    data: float
    compute: float
    other: float


@dataclass(frozen=True)
class ScalingPoint:
    """One result against that of the fewest devices; `loss` is None where either has no breakdown."""

    result: Result
    speedup: Ratio
    efficiency: Ratio
    loss: ScalingLoss | None


@dataclass(frozen=True)
class ScalingSeries:
    """Results that differ in topology alone, or in the batch of a device as well where `global_batch` stays.

    The first point is the baseline: the fewest devices that were measured, not always one.
    """

    kind: ScalingKind
    key: Key
    global_batch: int | None
    points: tuple[ScalingPoint, ...]

    @property
    def baseline(self) -> Result:
        return self.points[0].result


def scaling(results: Sequence[Result]) -> tuple[ScalingSeries, ...]:
    """Weak series, then strong ones, in order of appearance; what ran on one number of devices is in none."""
    weak: dict[tuple[Key, int | None], list[Result]] = {}
    strong: dict[tuple[Key, int | None], list[Result]] = {}
    for result in results:
        alone = replace(result.key, nodes=1, devices_per_node=1)
        weak.setdefault((alone, None), []).append(result)
        if result.key.batch_per_device is not None:
            together = result.key.batch_per_device * result.key.devices
            strong.setdefault((replace(alone, batch_per_device=None), together), []).append(result)
    return (*_series(ScalingKind.WEAK, weak), *_series(ScalingKind.STRONG, strong))


def _series(kind: ScalingKind, groups: dict[tuple[Key, int | None], list[Result]]) -> Iterable[ScalingSeries]:
    for (key, global_batch), members in groups.items():
        if len({member.key.devices for member in members}) > 1:
            ordered = sorted(members, key=lambda result: (result.key.devices, result.key.nodes))
            yield ScalingSeries(
                kind, key, global_batch, tuple(_point(result, ordered[0]) for result in ordered)
            )


def _point(result: Result, baseline: Result) -> ScalingPoint:
    if result is baseline:
        return ScalingPoint(result, ONE, ONE, None)
    speedup = result_ratio(result, baseline)
    share = baseline.key.devices / result.key.devices
    efficiency = speedup.mapped(lambda ratio: ratio * share)
    return ScalingPoint(result, speedup, efficiency, _loss(result, baseline, efficiency.value))


def _loss(result: Result, baseline: Result, efficiency: float) -> ScalingLoss | None:
    """What each part takes of a sample's device time, less what it took of it at the baseline.

    A sample takes 1 device-second ÷ (throughput of a device), at the baseline `efficiency` times as much.
    """
    if result.breakdown is None or baseline.breakdown is None:
        return None
    now, then = result.breakdown.parts, baseline.breakdown.parts
    parts = (part.name for part in fields(ScalingLoss))
    return ScalingLoss(**{part: getattr(now, part) - efficiency * getattr(then, part) for part in parts})
