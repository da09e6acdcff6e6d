"""Nodes × devices, written as the published reports write it: 1n1g, 2n8g."""

from __future__ import annotations

import re
from dataclasses import dataclass

WRITTEN = re.compile(r"([1-9]\d{0,4})n([1-9]\d{0,3})g")


@dataclass(frozen=True, order=True)
class Topology:
    nodes: int
    devices_per_node: int

    @property
    def devices(self) -> int:
        return self.nodes * self.devices_per_node

    def __str__(self) -> str:
        return f"{self.nodes}n{self.devices_per_node}g"


def parse_topology(text: str) -> Topology:
    match = WRITTEN.fullmatch(text.strip())
    if not match:
        raise ValueError(f"'{text}' is not a topology; write nodes and devices per node as in 1n8g")
    return Topology(int(match[1]), int(match[2]))


ONE_DEVICE = Topology(1, 1)


def powers_of_two(most: Topology) -> list[Topology]:
    """1n1g, 1n2g, … up to what one node has, then 2n8g, 4n8g, … of whole nodes; and the most itself."""
    within = [Topology(1, count) for count in _doubling(most.devices_per_node)]
    return [
        *within,
        *(Topology(nodes, most.devices_per_node) for nodes in _doubling(most.nodes) if nodes > 1),
    ]


def _doubling(most: int) -> list[int]:
    counts = [1 << exponent for exponent in range(most.bit_length()) if 1 << exponent <= most]
    return sorted({*counts, most})
