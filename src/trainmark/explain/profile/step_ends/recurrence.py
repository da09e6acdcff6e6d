"""N-grams of a sequence that recur at even distances, and how alike the parts between them are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

ORDERS = 5  # n-grams of 1, 2, 4, 8 and 16

Integers = npt.NDArray[np.int64]


class Runs(NamedTuple):
    """Evenly spaced occurrences of n-grams: run i is `ends[first[i] : first[i] + length[i] + 1]`.

    `ends` has the last element of each n-gram; `length` counts distances and is at least 2.
    """

    ends: Integers
    first: Integers
    length: Integers
    period: npt.NDArray[np.float64]  # mean distance

    def places(self, runs: Integers, length: int) -> Integers:
        """Return where the first `length` + 1 n-grams of each run end."""
        at: Integers = self.ends[self.first[runs, None] + np.arange(length + 1)]
        return at


def even_runs(sequence: Integers, least_covered: float) -> Runs:
    """Return the runs that cover a share of the sequence; one distance may differ from the next by a tenth.

    Each n-gram is numbered by its two halves (Karp, Miller and Rosenberg 1972), so all take one sort a size.
    """
    numbers, size, base = sequence, 1, 0
    found: list[tuple[Integers, Integers, Integers, Integers]] = []
    for _ in range(ORDERS):
        order = np.argsort(numbers, kind="stable")
        ordered = numbers[order]
        same = ordered[1:] == ordered[:-1]
        distance = np.diff(order)
        tolerance = (np.minimum(distance[1:], distance[:-1]) + 7) // 10
        even = same[1:] & same[:-1] & (np.abs(np.diff(distance)) <= tolerance)
        edges = np.flatnonzero(np.diff(even.astype(np.int8), prepend=0, append=0))
        first, length = edges[::2], edges[1::2] - edges[::2] + 1
        extent = order[first + length] - order[first]
        covers = extent + extent / length >= least_covered * len(sequence)
        found.append((order + size - 1, base + first[covers], length[covers], extent[covers]))
        if len(numbers) <= size:
            break
        base += len(order)
        dense = np.empty_like(numbers)
        dense[order] = np.concatenate(([0], np.cumsum(~same)))
        numbers = dense[:-size] * len(dense) + dense[size:]
        size *= 2
    ends, first, length, extent = (np.concatenate(columns) for columns in zip(*found, strict=True))
    return Runs(ends, first, length, extent / length)


def groups_by_period(runs: Runs, ratio: float) -> list[Integers]:
    """Return the runs of about the same period together, the least period first."""
    order = np.argsort(runs.period, kind="stable")
    period = runs.period[order]
    groups = np.split(order, np.flatnonzero(period[1:] > ratio * period[:-1]) + 1)
    return [group for group in groups if len(group)]


class Bags(NamedTuple):
    """How often each kind of element is in a part of a sequence, and how much the parts differ in this."""

    typical: Integers  # the median over the parts, of an even number the lower one
    above: Integers  # elements beyond it, of all parts
    below: Integers  # elements that parts have less


def bags(sequence: Integers, ends: Integers, kinds: int) -> Bags:
    """Compare the parts, each from after one of `ends` to the next, whatever the order within them."""
    parts = len(ends) - 1
    part = np.repeat(np.arange(parts), np.diff(ends))
    keys, counts = np.unique(part * kinds + sequence[ends[0] + 1 : ends[-1] + 1], return_counts=True)
    kind = keys % kinds
    order = np.lexsort((counts, kind))
    present = np.bincount(kind, minlength=kinds)
    rank = (parts - 1) // 2 - (parts - present)  # among the parts that have the kind
    at = np.cumsum(present) - present + rank
    typical = np.where(rank >= 0, counts[order][at.clip(0, len(order) - 1)], 0)
    above = np.bincount(kind, np.maximum(counts - typical[kind], 0), kinds).astype(np.int64)
    return Bags(typical, above, parts * typical + above - np.bincount(kind, counts, kinds).astype(np.int64))
