"""Logs that are copies of each other: two runs never take the same times to the last digit."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from trainmark.measure.trace import Floats

# What two runs of the same seed can share is left out: losses and rates of change may well be equal.
TIMED = ("wall", "rate", "seconds", "ms")
# A handful of rounded numbers can agree by chance.
FEWEST_LINES = 5


def copies(runs: Sequence[Mapping[str, Floats]]) -> dict[int, tuple[int, ...]]:
    """For each run whose times are also another's, the others."""
    alike: dict[bytes, list[int]] = {}
    for index, columns in enumerate(runs):
        timed = [columns[name] for name in TIMED if name in columns]
        if timed and len(timed[0]) >= FEWEST_LINES:
            print_of = hashlib.sha256(b"".join(column.tobytes() for column in timed)).digest()
            alike.setdefault(print_of, []).append(index)
    return {
        index: tuple(other for other in group if other != index)
        for group in alike.values()
        if len(group) > 1
        for index in group
    }
