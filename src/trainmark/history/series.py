"""A case's results over time."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Point:
    """One result: the trials of a case in one run.

    `values` are the throughputs of its trials in samples a second; `facts` are what was recorded of the
    machine and the software, under flat names.
    """

    run: str
    time: float
    values: tuple[float, ...]
    facts: Mapping[str, str] = field(default_factory=dict)
    doubts: tuple[str, ...] = ()

    @property
    def median(self) -> float:
        return statistics.median(self.values)
