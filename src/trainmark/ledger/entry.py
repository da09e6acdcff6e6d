"""One published figure with everything its source says about how it came to be."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Source:
    """Where a file of figures comes from, and how far they can be relied on."""

    title: str
    page: str
    confidence: str
    commit: str | None = None
    date: str | None = None
    kind: str = "published"


@dataclass(frozen=True)
class Row:
    """What a table says in one row; None is "not said". Throughput is that of all devices together."""

    workload: str
    framework: str
    device: str | None = None
    framework_version: str | None = None
    precision: str | None = None
    loss_scale: str | None = None
    layout: str | None = None
    compiler: str | None = None
    data: str | None = None
    image_size: int | None = None
    batch_per_device: int | None = None
    max_batch: int | None = None
    nodes: int | None = None
    devices_per_node: int | None = None
    throughput: float | None = None
    unit: str = "images/s"
    runs: tuple[float, ...] = ()
    average: float | None = None
    speedup: float | None = None
    memory_mb: float | None = None
    epochs: int | None = None
    time_to_train_s: float | None = None
    top1: float | None = None
    interconnect: str | None = None
    driver: str | None = None
    cuda: str | None = None
    cudnn: str | None = None
    note: str | None = None

    @property
    def devices(self) -> int | None:
        return self.nodes * self.devices_per_node if self.nodes and self.devices_per_node else None

    @property
    def topology(self) -> str | None:
        return f"{self.nodes}n{self.devices_per_node}g" if self.devices else None

    @property
    def per_device(self) -> float | None:
        return self.throughput / self.devices if self.throughput and self.devices else None


@dataclass(frozen=True)
class Entry:
    """A row of the ledger: the name of its file, its source, what it says, and what is known to be wrong."""

    source: str
    origin: Source
    row: Row
    errata: tuple[str, ...] = ()


SOURCE_FIELDS = tuple(field.name for field in fields(Source))
ROW_FIELDS = tuple(field.name for field in fields(Row))
