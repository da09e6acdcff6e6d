"""Fabrics whose latency and bandwidth are chosen, one link of them worse where a test plants it."""

from __future__ import annotations

import random
from collections.abc import Mapping
from itertools import combinations

from trainmark.measure.fabric import AllReduce, FabricMeasurement, Link, MessageTime

SIZES = (8, 1 << 10, 1 << 14, 1 << 17, 1 << 20, 1 << 23, 1 << 26)
INSIDE = (8e-6, 20e9)
BETWEEN = (22e-6, 11.6e9)


def link(ranks, nodes, latency, bandwidth, noise=None, wide=0.02) -> Link:
    """Times on the line, each off by up to 3 % where there is `noise`, in intervals `wide` to each side."""

    def point(size: int) -> MessageTime:
        seconds = (latency + size / bandwidth) * (noise.uniform(0.97, 1.03) if noise else 1.0)
        return MessageTime(size, seconds, seconds * (1 - wide), seconds * (1 + wide))

    return Link(ranks, nodes, tuple(point(size) for size in SIZES))


def fabric(
    nodes: Mapping[str, int], worse: Mapping[tuple[int, int], tuple[float, float]] | None = None
) -> FabricMeasurement:
    """`nodes` has the ranks of each; `worse` multiplies latency and bandwidth of a pair of ranks."""
    noise = random.Random(5)
    where = tuple(name for name, ranks in nodes.items() for _ in range(ranks))
    links = []
    for pair in combinations(range(len(where)), 2):
        ends = where[pair[0]], where[pair[1]]
        latency, bandwidth = INSIDE if ends[0] == ends[1] else BETWEEN
        later, narrower = (worse or {}).get(pair, (1.0, 1.0))
        links.append(link(pair, ends, latency * later, bandwidth * narrower, noise))
    reduced = AllReduce(
        len(where), len(nodes), tuple(MessageTime(size, 1e-4 + size / 5e9, 1e-4, 1.0) for size in SIZES)
    )
    return FabricMeasurement(
        "2026-11-15T10:00:00+00:00", "cpu", "gloo", False, where, tuple(links), (reduced,)
    )
