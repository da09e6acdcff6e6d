"""Where a result stands against the best published on comparable hardware."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from trainmark.logs.ledger.entry import SIZE_AXIS, LedgerEntry, LedgerRow, axis_of, device_family, names_of
from trainmark.measure.key import Key

PRECISION_CLASS = {"fp32": "fp32", "tf32": "tf32", "amp": "16-bit", "fp16": "16-bit", "bf16": "16-bit"}
COMPARED = (
    "framework",
    "framework_version",
    "device",
    "precision",
    "loss_scale",
    "layout",
    "compiler",
    "data",
    "batch_per_device",
    "topology",
)
# The length of a sequence is part of the work, as the size of the model is: rows of another are not compared.
LENGTH_AXIS = "length"
UNSCALED = frozenset({"fp32", "tf32", "bf16"})
SAME_VALUE = {"torch.compile": "compile"}  # what others call a compiler that has another name here
# Where these are not given in a key, there is none; in a published table it is only not said.
NONE_BY_DEFAULT = frozenset({"compiler", "loss_scale"})


@dataclass(frozen=True)
class StandingDifference:
    """A part of the configuration in which both sides are known and not the same."""

    field: str
    ours: str
    theirs: str


@dataclass(frozen=True)
class Standing:
    """A result beside the best comparable entry.

    `ratio` is ours over theirs: of all devices where both have as many, otherwise of one (`per_device`).
    `ceiling` is an entry with another number of devices that gets more out of each than `best` does.
    """

    best: LedgerEntry
    ratio: float
    per_device: bool
    comparable: int
    differences: tuple[StandingDifference, ...]
    unstated: tuple[str, ...]
    ceiling: LedgerEntry | None = None


def standing(
    key: Key, throughput: float, entries: Iterable[LedgerEntry], unit: str = "images/s"
) -> Standing | None:
    """The place of a throughput (of all devices) among the entries; None where nothing is comparable.

    Only rows in the same unit are: sequences are never turned into tokens, as codes that skip padding compute
    fewer than the length says.
    """
    candidates = comparable(key, entries, unit)
    if not candidates:
        return None
    same_count = [entry for entry in candidates if entry.row.devices == key.devices]
    best = max(same_count or candidates, key=_per_device)
    fastest = max(candidates, key=_per_device)
    differences, unstated = _differences(key, best.row)
    return Standing(
        best=best,
        ratio=throughput / key.devices / _per_device(best),
        per_device=not same_count,
        comparable=len(candidates),
        differences=differences,
        unstated=unstated,
        ceiling=fastest if _per_device(fastest) > _per_device(best) else None,
    )


def comparable(key: Key, entries: Iterable[LedgerEntry], unit: str = "images/s") -> list[LedgerEntry]:
    """Others' throughputs of the same model, family of device and class of precision, in the same unit."""
    if not key.device:
        return []
    device, precision, names = (
        device_family(key.device),
        PRECISION_CLASS.get(key.precision or ""),
        names_of(key),
    )
    return [
        entry
        for entry in entries
        if entry.origin.kind == "published"
        and entry.row.workload in names
        and entry.row.unit == unit
        and _same_length(key, entry.row)
        and entry.row.device
        and device_family(entry.row.device) == device
        and precision is not None
        and PRECISION_CLASS.get(entry.row.precision or "") == precision
        and entry.row.per_device
    ]


def _same_length(key: Key, row: LedgerRow) -> bool:
    """Whether a sequence is the same work on both sides; a row that skips padding computes less of it."""
    length = key.value(LENGTH_AXIS)
    return length is None or (length == axis_of(row, LENGTH_AXIS) and row.padding != "skipped")


def _per_device(entry: LedgerEntry) -> float:
    return entry.row.per_device or 0.0


def _differences(key: Key, row: LedgerRow) -> tuple[tuple[StandingDifference, ...], tuple[str, ...]]:
    differences, unstated = [], []
    axes = (name for name, _ in key.axes if name not in (SIZE_AXIS, LENGTH_AXIS))
    for name in (*COMPARED[:-2], *axes, *COMPARED[-2:]):
        if name == "framework_version" and key.framework != row.framework:
            continue
        ours, theirs = getattr(key, name, key.value(name)), axis_of(row, name)
        if name in NONE_BY_DEFAULT:
            ours = ours or "none"
        if name == "loss_scale" and key.precision in UNSCALED and row.precision in UNSCALED:
            continue
        if ours is None and theirs is None:
            continue
        if ours is None or theirs is None:
            unstated.append(name)
        elif ours != theirs and ours != SAME_VALUE.get(str(theirs)):
            differences.append(StandingDifference(name, str(ours), str(theirs)))
    return tuple(differences), tuple(unstated)


SHORT_UNITS = {"images/s": "img/s", "sequences/s": "seq/s", "samples/s": "samples/s", "tokens/s": "tok/s"}
