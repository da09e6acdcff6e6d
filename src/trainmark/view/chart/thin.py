"""Fewer points for the same picture: the lowest and the highest of each stretch."""

from __future__ import annotations

from collections.abc import Sequence


def extremes(values: Sequence[float], buckets: int) -> list[int]:
    """Return the indices of the first, the last, and each bucket's lowest and highest value, in order."""
    count = len(values)
    if count <= 2 * buckets:
        return list(range(count))
    chosen = {0, count - 1}
    for bucket in range(buckets):
        start = bucket * count // buckets
        stretch = values[start : (bucket + 1) * count // buckets]
        chosen |= {start + stretch.index(min(stretch)), start + stretch.index(max(stretch))}
    return sorted(chosen)


def straightened(points: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Leave out points that repeat the one before or lie inside a level or an upright stretch."""
    corners: list[tuple[int, int]] = []
    for point in points:
        if corners and point == corners[-1]:
            continue
        if len(corners) > 1 and _between(corners[-2], corners[-1], point):
            corners[-1] = point
        else:
            corners.append(point)
    return corners


def _between(first: tuple[int, int], middle: tuple[int, int], last: tuple[int, int]) -> bool:
    level = first[1] == middle[1] == last[1] and first[0] <= middle[0] <= last[0]
    upright = first[0] == middle[0] == last[0] and (middle[1] - first[1]) * (last[1] - middle[1]) > 0
    return level or upright
