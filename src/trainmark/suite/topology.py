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
    found = WRITTEN.fullmatch(text.strip())
    if not found:
        raise ValueError(f"'{text}' is not a topology; write nodes and devices per node as in 1n8g")
    return Topology(int(found[1]), int(found[2]))


def powers_of_two(most: int) -> list[Topology]:
    """1n1g, 1n2g, … up to what one node has, and that number itself."""
    counts = [1 << exponent for exponent in range(most.bit_length()) if 1 << exponent <= most]
    return [Topology(1, count) for count in sorted({*counts, most})]
