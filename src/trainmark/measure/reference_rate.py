"""The reference rate (speed of light) of a device: what our fused step does on it, a result's share of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf, isfinite

from trainmark import __version__
from trainmark.base.typed_json import flattened
from trainmark.measure.figure import Result
from trainmark.measure.key import Axes, Key

FUSED = "fused"
HALF = "half"
# Both multiply in 16 bits at the same rate, so that one reference serves them.
HALF_PRECISIONS = frozenset({"amp", "bf16"})

Place = tuple[str, str, Axes, str]


@dataclass(frozen=True, order=True)
class ReferenceRate:
    """The fastest fused step on one device; `rate` is its samples a second, `version` Trainmark's.

    `precision` is `half` for amp and bf16, otherwise what a key calls it; `taken` is in ISO 8601, UTC.
    """

    device: str
    workload: str
    axes: Axes = field(metadata=flattened())
    precision: str
    rate: float
    batch: int
    version: str
    taken: str

    @property
    def place(self) -> Place:
        """What a result must have in common with it."""
        return self.device, self.workload, self.axes, self.precision


def is_fused(key: Key) -> bool:
    return FUSED in (key.compiler or "").split("+")


def reference_rates(
    results: Iterable[Result], taken: str, version: str = __version__
) -> tuple[ReferenceRate, ...]:
    """Of each device, workload, axes and precision the batch with the fastest median.

    Only one device alone, on synthetic data: what it waits for others or for data is not its own speed. On
    a CPU, whose results have threads, the step runs without its kernels and shows nothing.
    """
    fastest: dict[Place, ReferenceRate] = {}
    for result in results:
        key, place, batch = result.key, _place(result.key), result.key.batch_per_device
        alone = key.devices == 1 and key.threads is None and key.data == "synthetic" and is_fused(key)
        if not alone or place is None or batch is None or not 0 < result.throughput < inf:
            continue
        if place not in fastest or fastest[place].rate < result.throughput:
            fastest[place] = ReferenceRate(*place, result.throughput, batch, version, taken)
    return tuple(sorted(fastest.values()))


def merge_reference_rates(
    old: Iterable[ReferenceRate], new: Iterable[ReferenceRate]
) -> tuple[ReferenceRate, ...]:
    """Both, where they are of the same place the faster one, whenever it was taken.

    Light is the fastest that was seen. A later run with a small batch, or on a device that has been slowed
    down, says nothing of how fast the device could go.
    """
    fastest: dict[Place, ReferenceRate] = {}
    for each in (*old, *new):
        if each.place not in fastest or fastest[each.place].rate < each.rate:
            fastest[each.place] = each
    return tuple(sorted(fastest.values()))


def reference_rate_of(result: Result, known: Iterable[ReferenceRate]) -> ReferenceRate | None:
    """That of the same device, workload, axes and precision; its data may be of any kind."""
    place = _place(result.key)
    return next((each for each in known if each.place == place), None)


def share(result: Result, known: Iterable[ReferenceRate]) -> float | None:
    """The throughput of a device ÷ the reference's; None where there is none for it."""
    reference = reference_rate_of(result, known)
    if reference is None or not isfinite(result.throughput):
        return None
    return result.throughput / (result.key.devices * reference.rate)


def _place(key: Key) -> Place | None:
    if key.device is None or not key.axes or key.precision is None:
        return None
    return key.device, key.workload, key.axes, HALF if key.precision in HALF_PRECISIONS else key.precision
