"""Which combinations of parameters a kernel is tried on."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product

import torch

Row = tuple[int, ...]


def cases(*axes: Sequence[object]) -> list[tuple[object, ...]]:
    """All combinations on a GPU; in the interpreter, which takes seconds for each, all pairs."""
    chosen = product(*map(range, map(len, axes))) if torch.cuda.is_available() else all_pairs(axes)
    return [tuple(axis[at] for axis, at in zip(axes, row, strict=True)) for row in chosen]


def all_pairs(axes: Sequence[Sequence[object]]) -> list[Row]:
    """Rows in which any two values of two axes occur together at least once, found greedily."""
    every = list(product(*map(range, map(len, axes))))
    missing = set().union(*map(_pairs, every))
    rows = []
    while missing:
        rows.append(max(every, key=lambda row: len(_pairs(row) & missing)))
        missing -= _pairs(rows[-1])
    return rows


def _pairs(row: Row) -> set[object]:
    return set(combinations(enumerate(row), 2))
