"""Nodes and the devices of each."""

from __future__ import annotations

from typing import NamedTuple


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
