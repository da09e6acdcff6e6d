"""What a collective reaches of the fabric that was measured, in nccl-tests' bus bandwidth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trainmark.explain.explanation import Bucket, RankTime
from trainmark.measure.fabric import AllReduce, FabricMeasurement, alpha_beta_model, bus_factor

# A rank is waited for where it costs the others this share of the step: below, ranks take turns.
LATE_SHARE = 0.01
MOST_BUCKETS = 3


def bus_bytes(kind: str, size: int, ranks: int) -> float:
    """Return what each rank must at least send (nccl-tests, doc/PERFORMANCE.md); 0 for one rank alone."""
    if ranks < 2:
        return 0.0
    if kind == "all_reduce":
        return bus_factor(ranks) * size
    if kind in ("all_gather", "reduce_scatter", "all_to_all"):
        return (ranks - 1) / ranks * size
    return float(size)


def link_bandwidth(fabric: FabricMeasurement, ranks: int) -> float | None:
    """Return the bus bandwidth in bytes/s of the all-reduce measured over as many ranks, or the next more."""
    measured = _nearest(fabric, ranks)
    rate = alpha_beta_model(measured.points).bytes_per_second if measured else None
    return None if measured is None or rate is None else bus_factor(measured.ranks) * rate


def expected_seconds(fabric: FabricMeasurement, ranks: int, size: int) -> float | None:
    """Return the time of an all-reduce of this size by the measured line of latency and bandwidth."""
    measured = _nearest(fabric, ranks)
    if measured is None or measured.ranks != ranks:
        return None
    fitted = alpha_beta_model(measured.points)
    return (
        None if fitted.bytes_per_second is None else fitted.latency_seconds + size / fitted.bytes_per_second
    )


def waited_for(ranks: Sequence[RankTime]) -> RankTime | None:
    """Return the rank that the others wait for most, where that is worth naming."""
    latest = max(ranks, key=lambda rank: rank.late, default=None)
    return latest if latest is not None and latest.late > LATE_SHARE * latest.step else None


def evidence(ranks: Sequence[RankTime], buckets: Sequence[Bucket], link: float | None) -> Iterator[str]:
    """Yield what shows that communication is not hidden: the late rank, then the most exposed collectives."""
    if (late := waited_for(ranks)) is not None:
        place = f" ({late.node})" if late.node else ""
        yield f"rank {late.rank}{place} comes late: the others wait {late.late * 1e3:,.3f} ms a step for it"
    for bucket in sorted(buckets, key=lambda bucket: -bucket.exposed)[:MOST_BUCKETS]:
        if not bucket.exposed:
            return
        size = "" if bucket.bytes is None else f" of {bucket.bytes / 1e6:,.1f} MB"
        rate = "" if bucket.bandwidth is None else f", {bucket.bandwidth / 1e9:,.3g} GB/s"
        share = f" = {bucket.bandwidth / link:.0%} of the fabric's" if bucket.bandwidth and link else ""
        times = f"{bucket.exposed * 1e3:,.3f} of {bucket.seconds * 1e3:,.3f} ms exposed"
        yield f"{bucket.name}{size}: {times}{rate}{share}"


def _nearest(fabric: FabricMeasurement, ranks: int) -> AllReduce | None:
    larger = [reduced for reduced in fabric.all_reduces if reduced.ranks >= ranks and reduced.points]
    return min(larger, key=lambda reduced: reduced.ranks, default=None)
