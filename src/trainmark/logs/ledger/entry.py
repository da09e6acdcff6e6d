"""One published figure with everything its source says about how it came to be.

Also what its model and its device are called: a workload's size belongs to the name of what was published,
and devices are the same but for their maker's name and the size of their memory.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from typing import Any

from trainmark.measure.key import Key


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
class LedgerRow:
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
class LedgerEntry:
    """A row of the ledger: the name of its file, its source, what it says, and what is known to be wrong."""

    source: str
    origin: Publication
    row: LedgerRow
    errata: tuple[str, ...] = ()

    @property
    def date(self) -> str | None:
        return self.row.date or self.origin.date


SOURCE_FIELDS = tuple(field.name for field in fields(Publication))
ROW_FIELDS = tuple(field.name for field in fields(LedgerRow))


# Llama 3 and 3.1 have one architecture at a size; 3.1 only scales its rotary positions for longer contexts.
SAME_MODEL = {"llama-8b": ("llama3-8b", "llama3.1-8b")}
FIELD_OF_AXIS = {"length": "sequence_length"}
SIZE_AXIS = "size"


def published_names(workload: str, size: int | str | None = None) -> tuple[str, ...]:
    """Return what rows of this model are called: `gpt2-124m` for gpt2 at size 124m, `resnet50` for itself."""
    name = workload if size is None else f"{workload}-{size}"
    return (name, *SAME_MODEL.get(name, ()))


def sizes_of(workload: str, known: Collection[str]) -> list[str]:
    """Return the sizes of a workload that the known published names tell."""
    names = {name for name in (*known, *SAME_MODEL) if name.startswith(f"{workload}-")}
    return sorted(name.removeprefix(f"{workload}-") for name in names)


def names_of(key: Key) -> tuple[str, ...]:
    return published_names(key.workload, key.value(SIZE_AXIS))


def axis_of(row: LedgerRow, axis: str) -> int | str | None:
    """Return a row's value of a workload's axis; None where the source does not state it."""
    value: int | str | None = getattr(row, FIELD_OF_AXIS.get(axis, axis), None)
    return value


# Makers, memory and the socketed form say nothing about speed that the model does not; PCIe boards, NVL and
# slices of a device are slower than it, so that these words stay.
MAKERS = "nvidia|tesla|geforce|google|intel|habana|amd|instinct|huawei|graphcore"
MAKER = re.compile(rf"(?<![\w.])(?:{MAKERS})\b", re.IGNORECASE)
TRADE_MARKS = re.compile(r"\((?:r|tm|c)\)|\b(?:\d+-core )?(?:cpu|processor)(?: @.*)?$", re.IGNORECASE)
NOT_FAMILY = re.compile(rf"(?<![\w.])(?:{MAKERS}|\d+ ?gb|sxm\d?|hbm\d?e?)\b")


@lru_cache
def device_family(device: str) -> str:
    """`v100` for `Tesla V100-SXM2-16GB`, `h100 pcie` for `NVIDIA H100 PCIe`."""
    return " ".join(re.split(r"[\s_-]+", NOT_FAMILY.sub(" ", device.lower()).strip(" -_")))


def short_name(device: str) -> str:
    """Return the model without its maker: `H200` for `NVIDIA H200`, `Xeon 8480` for `Intel(R) Xeon 8480`."""
    plain = TRADE_MARKS.sub("", device)
    return " ".join(MAKER.sub("", plain).split()) or device


# Scripts rely on these names; the others follow them.
FIRST_FIELDS = (
    "source",
    "date",
    "framework",
    "framework_version",
    "workload",
    "device",
    "precision",
    "loss_scale",
    "batch_per_device",
    "nodes",
    "devices_per_node",
    "throughput",
    "speedup",
    "memory_mb",
    "time_to_train_s",
    "top1",
)


def as_record(entry: LedgerEntry) -> dict[str, Any]:
    """Every field by its name; what the source does not say is None."""
    fields: dict[str, Any] = {
        "source": entry.source,
        **asdict(entry.row),
        "date": entry.date,
        "runs": list(entry.row.runs) or None,
        "title": entry.origin.title,
        "page": entry.origin.page,
        "commit": entry.origin.commit,
        "confidence": entry.origin.confidence,
        "kind": entry.origin.kind,
        "errata": list(entry.errata),
    }
    names = (*FIRST_FIELDS, *(name for name in fields if name not in FIRST_FIELDS))
    return {name: fields[name] for name in names}
