"""Sizes in nodes and devices, and what an all-reduce costs at a size on a fabric, by algorithm."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil, inf, log2
from typing import Any, NamedTuple

from trainmark.base.errors import UserError
from trainmark.measure.statistics import median_known


class Size(NamedTuple):
    nodes: int
    devices_per_node: int

    @property
    def devices(self) -> int:
        return self.nodes * self.devices_per_node

    @property
    def node(self) -> Size:
        """One node of it."""
        return Size(1, self.devices_per_node)

    def __str__(self) -> str:
        return f"{self.nodes}n{self.devices_per_node}g"


ONE_DEVICE = Size(1, 1)


@dataclass(frozen=True)
class FabricModel:
    """Latency in seconds and bytes a second: `bandwidth` of one node's network, `intra_` inside a node."""

    bandwidth: float
    latency: float = 5e-6
    intra_bandwidth: float = 130e9
    intra_latency: float = 5e-6


# Four nodes of eight V100 with one EDR adapter each: the cluster of most of the published series. 130 GB/s
# is what the rings over the NVLinks of such a node carry.
EDR = FabricModel(bandwidth=100e9 / 8)


def ring(size: Size, count: float, fabric: FabricModel) -> float:
    """One ring through all devices; every byte crosses the slowest link: 2(p−1)/p·n/B + 2(p−1)·α."""
    p = size.devices
    alpha, bandwidth = _slowest(size, fabric)
    return 2 * (p - 1) / p * count / bandwidth + 2 * (p - 1) * alpha


def tree(size: Size, count: float, fabric: FabricModel) -> float:
    """Two binary trees over the nodes, half of the bytes each, a chain inside a node: 2·n/B + 2·log₂(N)·α.

    Every node is a leaf of one tree and inside the other, so that it sends and receives all bytes once up
    and once down (Sanders, Speck & Träff 2009).
    """
    if size.devices == 1:
        return 0.0
    _, bandwidth = _slowest(size, fabric)
    hops = ceil(log2(size.nodes)) * fabric.latency + (size.devices_per_node - 1) * fabric.intra_latency
    return 2 * count / bandwidth + 2 * hops


def hierarchical(size: Size, count: float, fabric: FabricModel) -> float:
    """Reduce-scatter inside the nodes, a ring of each part across them, gather inside the nodes.

    The devices of a node send their parts through the node's one network at a time, n bytes together.
    """
    n, d = size
    inside = (d - 1) / d * count / fabric.intra_bandwidth + (d - 1) * fabric.intra_latency
    across = 2 * (n - 1) / n * count / fabric.bandwidth + 2 * (n - 1) * fabric.latency
    return 2 * inside + across


ALGORITHMS: dict[str, Callable[[Size, float, FabricModel], float]] = {
    "hierarchical": hierarchical,
    "ring": ring,
    "tree": tree,
}


def tells_between_nodes(record: Mapping[str, Any]) -> bool:
    """Whether a record of `trainmark fabric` holds anything from one node to another."""
    return any(not same for same, _, _ in _links(record)) or bool(_wide_reduces(record))


def fabric_of_record(record: Mapping[str, Any], usual: FabricModel, algorithm: str) -> FabricModel:
    """The fabric that `trainmark fabric` measured; what it did not measure is as in `usual`.

    The bandwidth between nodes is the one at which the largest all-reduce across nodes takes as long as it
    took, because this is what training will do; where there was none, that of the median link.
    """
    links = _links(record)
    bandwidth = median_known(rate for same, _, rate in links if not same) or usual.bandwidth
    if wide := _wide_reduces(record):
        size, count, seconds = max(wide, key=lambda one: (one[1], one[0]))
        only_bytes = FabricModel(bandwidth=1.0, latency=0.0, intra_bandwidth=inf, intra_latency=0.0)
        bandwidth = ALGORITHMS[algorithm](size, count, only_bytes) / seconds
    return FabricModel(
        bandwidth=bandwidth,
        latency=median_known(late for same, late, _ in links if not same) or usual.latency,
        intra_bandwidth=median_known(rate for same, _, rate in links if same) or usual.intra_bandwidth,
        intra_latency=median_known(late for same, late, _ in links if same) or usual.intra_latency,
    )


def _links(record: Mapping[str, Any]) -> list[tuple[bool, float | None, float | None]]:
    """Whether on the same node, latency, bytes a second; what could not be measured is None."""
    with _as_user_error():
        return [
            (
                bool(one["same_node"]),
                _above_zero(one["latency_seconds"]),
                _above_zero(one["bytes_per_second"]),
            )
            for one in record.get("links") or ()
        ]


def _wide_reduces(record: Mapping[str, Any]) -> list[tuple[Size, float, float]]:
    """Size, bytes and seconds of the all-reduces across nodes."""
    with _as_user_error():
        return [
            (Size(int(one["nodes"]), int(one["ranks"]) // int(one["nodes"])), bytes_, seconds)
            for one in record.get("allreduce") or ()
            if one["nodes"] > 1
            and (bytes_ := _above_zero(one["bytes"]))
            and (seconds := _above_zero(one["seconds"]))
        ]


@contextmanager
def _as_user_error() -> Iterator[None]:
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserError(f"the run's fabric.json cannot be read ({error!r}); measure it again.") from error


def _above_zero(value: float | None) -> float | None:
    return float(value) if value and 0 < value < inf else None


def _slowest(size: Size, fabric: FabricModel) -> tuple[float, float]:
    if size.nodes == 1:
        return fabric.intra_latency, fabric.intra_bandwidth
    return fabric.latency, min(fabric.bandwidth, fabric.intra_bandwidth)
