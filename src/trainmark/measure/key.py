"""What a result is keyed by: everything that changes the figure."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from trainmark.base.typed_json import flattened

Axes = tuple[tuple[str, int | str], ...]


@dataclass(frozen=True, order=True)
class Key:
    """Two trials are repeats of one case exactly when their keys are equal; None is "not known".

    `axes` are the workload's own part, as it declares them; in JSON they stand among the other names.
    """

    workload: str
    framework: str | None = None
    framework_version: str | None = None
    variant: str | None = None
    axes: Axes = field(default=(), metadata=flattened())
    precision: str | None = None
    loss_scale: str | None = None
    layout: str | None = None
    compiler: str | None = None
    data: str | None = None
    batch_per_device: int | None = None
    nodes: int = 1
    devices_per_node: int = 1
    device: str | None = None
    threads: int | None = None
    recipe: str | None = None
    loader: str | None = None
    dataset: str | None = None
    target: str | None = None
    """The finish line, such as `perplexity=20`; None where only the rate was measured."""

    @property
    def stored_data(self) -> bool:
        """Whether it trains on data that is read, rather than made."""
        return self.data is not None and not self.data.startswith("synthetic")

    @property
    def devices(self) -> int:
        return self.nodes * self.devices_per_node

    @property
    def topology(self) -> str:
        return f"{self.nodes}n{self.devices_per_node}g"

    def value(self, name: str) -> Any:
        """Return a field or an axis by its name; None where the workload has no such axis."""
        return dict(self.axes).get(name) if name not in _FIELDS else getattr(self, name)

    def values(self) -> dict[str, Any]:
        """Return all names with their values, the axes among them, in the order of the fields."""
        flat: dict[str, Any] = {}
        for name in _FIELDS:
            flat.update(self.axes if name == "axes" else {name: getattr(self, name)})
        return flat


_FIELDS = tuple(each.name for each in fields(Key))
