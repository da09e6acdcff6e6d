"""Sets of disjoint half-open intervals as columns of whole nanoseconds."""

from __future__ import annotations

import numpy as np

from trainmark.explain.profile.model import Nanoseconds

Intervals = tuple[Nanoseconds, Nanoseconds]
EMPTY: Intervals = (np.zeros(0, np.int64), np.zeros(0, np.int64))


def union(start: Nanoseconds, end: Nanoseconds) -> Intervals:
    """Return the disjoint intervals, by start, that cover the same time."""
    filled = end > start
    start, end = start[filled], end[filled]
    if not len(start):
        return EMPTY
    order = np.argsort(start, kind="stable")
    start, reach = start[order], np.maximum.accumulate(end[order])
    first = np.concatenate(([True], start[1:] > reach[:-1]))
    last = np.concatenate((first[1:], [True]))
    return start[first], reach[last]


def clip(intervals: Intervals, low: int, high: int) -> Intervals:
    start, end = np.maximum(intervals[0], low), np.minimum(intervals[1], high)
    filled = end > start
    return start[filled], end[filled]


def complement(intervals: Intervals, low: int, high: int) -> Intervals:
    """Return the parts of [low, high) that are in none of the disjoint intervals."""
    start, end = clip(intervals, low, high)
    gap_start, gap_end = np.concatenate(([low], end)), np.concatenate((start, [high]))
    filled = gap_end > gap_start
    return gap_start[filled], gap_end[filled]


def subtract(intervals: Intervals, others: Intervals) -> Intervals:
    """Return the time of the first that is not in the second; both disjoint."""
    if not len(intervals[0]):
        return EMPTY
    low, high = int(intervals[0][0]), int(intervals[1][-1])
    return intersect(intervals, complement(others, low, high))


def intersect(first: Intervals, second: Intervals) -> Intervals:
    """Return the time in both; both disjoint and by start."""
    pairs: list[tuple[int, int]] = []
    ends = second[1]
    for start, end in zip(first[0].tolist(), first[1].tolist(), strict=True):
        at = int(np.searchsorted(ends, start, side="right"))
        while at < len(ends) and second[0][at] < end:
            pairs.append((max(start, int(second[0][at])), min(end, int(ends[at]))))
            at += 1
    if not pairs:
        return EMPTY
    table = np.array(pairs, np.int64)
    return table[:, 0], table[:, 1]


def length(intervals: Intervals) -> int:
    return int((intervals[1] - intervals[0]).sum())
