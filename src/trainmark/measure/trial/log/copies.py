"""Logs that are copies of each other: two runs never take the same times to the last digit."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from trainmark.measure.statistics.arrays import Floats

# What two runs of the same seed can share is left out: losses and rates of change may well be equal.
TIMED = ("wall", "rate", "seconds", "ms")
# A handful of rounded numbers can agree by chance.
FEWEST_LINES = 5


@dataclass(frozen=True)
class Copies:
    """A group of runs with the same times: the first of them, and how many there are."""

    first: int
    count: int


def digest(columns: Mapping[str, Floats], names: Iterable[str]) -> bytes:
    """A digest of what these columns say, to the last digit."""
    sha256 = hashlib.sha256()
    for name in names:
        if name in columns:
            sha256.update(columns[name].tobytes())
    return sha256.digest()


def times_digest(columns: Mapping[str, Floats]) -> bytes | None:
    """A digest of the times that a run took; None where they are too few to tell it from another."""
    timed = [columns[name] for name in TIMED if name in columns]
    return digest(columns, TIMED) if timed and len(timed[0]) >= FEWEST_LINES else None


def copies(digests: Iterable[bytes | None]) -> dict[int, Copies]:
    """The group of each run whose times are also another's, by the number of the run."""
    groups: dict[bytes, list[int]] = {}
    for index, digest in enumerate(digests):
        if digest is not None:
            groups.setdefault(digest, []).append(index)
    return {
        index: Copies(group[0], len(group)) for group in groups.values() if len(group) > 1 for index in group
    }
