"""One published figure with everything its source says about how it came to be."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Publication:
    """Where a file of figures comes from, and how far they can be relied on."""

    title: str
    page: str
    confidence: str
    commit: str | None = None
    date: str | None = None
    kind: str = "published"


@dataclass(frozen=True)
class Row:
    """What a table says in one row; None is "not said". Throughput is that of all devices together.

    `total_devices` is for a source that gives their number without the nodes, `date` for one whose rows are
    of several days. A step has `accumulate` micro-batches of `batch_per_device`, where both are stated.
    `padding` is "skipped" where positions without a token are not computed: such a sequence has fewer tokens
    than `sequence_length`.
    """

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
    sequence_length: int | None = None
    padding: str | None = None
    batch_per_device: int | None = None
    accumulate: int | None = None
    optimizer: str | None = None
    sharding: str | None = None
    recompute: str | None = None
    max_batch: int | None = None
    nodes: int | None = None
    devices_per_node: int | None = None
    total_devices: int | None = None
    throughput: float | None = None
    unit: str = "images/s"
    runs: tuple[float, ...] = ()
    average: float | None = None
    speedup: float | None = None
    memory_mb: float | None = None
    mfu: float | None = None
    tflops_per_device: float | None = None
    epochs: int | None = None
    time_to_train_s: float | None = None
    top1: float | None = None
    interconnect: str | None = None
    driver: str | None = None
    cuda: str | None = None
    cudnn: str | None = None
    submitter: str | None = None
    system: str | None = None
    note: str | None = None
    date: str | None = None

    @property
    def devices(self) -> int | None:
        if self.nodes and self.devices_per_node:
            return self.nodes * self.devices_per_node
        return self.total_devices

    @property
    def topology(self) -> str | None:
        return f"{self.nodes}n{self.devices_per_node}g" if self.nodes and self.devices_per_node else None

    @property
    def per_device(self) -> float | None:
        return self.throughput / self.devices if self.throughput and self.devices else None


@dataclass(frozen=True)
class Entry:
    """A row of the ledger: the name of its file, its source, what it says, and what is known to be wrong."""

    source: str
    origin: Publication
    row: Row
    errata: tuple[str, ...] = ()

    @property
    def date(self) -> str | None:
        return self.row.date or self.origin.date


SOURCE_FIELDS = tuple(field.name for field in fields(Publication))
ROW_FIELDS = tuple(field.name for field in fields(Row))
