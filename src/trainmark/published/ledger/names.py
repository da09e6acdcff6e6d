"""The names that a model has in the ledger: a workload's size belongs to the name of what was published."""

from __future__ import annotations

from collections.abc import Collection

from trainmark.measure.key import Key
from trainmark.published.ledger.entry import Row

# Llama 3 and 3.1 have one architecture at a size; 3.1 only scales its rotary positions for longer contexts.
SAME_MODEL = {"llama-8b": ("llama3-8b", "llama3.1-8b")}
FIELD_OF_AXIS = {"length": "sequence_length"}
SIZE = "size"


def published_names(workload: str, size: int | str | None = None) -> tuple[str, ...]:
    """Return what rows of this model are called: `gpt2-124m` for gpt2 at size 124m, `resnet50` for itself."""
    name = workload if size is None else f"{workload}-{size}"
    return (name, *SAME_MODEL.get(name, ()))


def sizes_of(workload: str, known: Collection[str]) -> list[str]:
    """Return the sizes of a workload that the known published names tell."""
    names = {name for name in (*known, *SAME_MODEL) if name.startswith(f"{workload}-")}
    return sorted(name.removeprefix(f"{workload}-") for name in names)


def names_of(key: Key) -> tuple[str, ...]:
    return published_names(key.workload, key.value(SIZE))


def axis_of(row: Row, axis: str) -> int | str | None:
    """Return a row's value of a workload's axis; None where the source does not state it."""
    value: int | str | None = getattr(row, FIELD_OF_AXIS.get(axis, axis), None)
    return value
