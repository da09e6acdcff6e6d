"""What a result is keyed by: everything that changes the figure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Key:
    """Two trials are repeats of one case exactly when their keys are equal; None is "not known"."""

    workload: str
    framework: str | None = None
    framework_version: str | None = None
    variant: str | None = None
    image_size: int | None = None
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
    """The finish line, such as `top1=0.761`; None where only the rate was measured."""

    @property
    def devices(self) -> int:
        return self.nodes * self.devices_per_node

    @property
    def topology(self) -> str:
        return f"{self.nodes}n{self.devices_per_node}g"
