"""Ranges of the numbers in an event: what a program says outside of them cannot be true.

They are wide (a million ranks, a petabyte of memory) and there to bound what reading costs and to keep
impossible numbers out of the arithmetic, not to judge a result.
"""

from __future__ import annotations

import sys
from math import isfinite
from typing import Any, NamedTuple

MOST_RANKS = 1 << 20
# Larger integers are not exact as a float.
LARGEST_COUNT = float(1 << 53)
LARGEST_TIME = 1e11
LONGEST_TEXT = 200
MOST_NAMES = 32
LARGEST_FLOAT = sys.float_info.max


class Range(NamedTuple):
    """Inclusive; `types` are those that JSON may hold, `finite` is whether NaN and infinity are outside."""

    types: tuple[type, ...]
    low: float | None = None
    high: float = 0.0
    finite: bool = True

    def holds(self, value: Any) -> bool:
        if type(value) not in self.types:
            return False
        # NaN is in no interval.
        within = self.low is None or self.low <= value <= self.high
        return within or (not self.finite and type(value) is float and not isfinite(value))


REAL = (int, float)
TIME = Range(REAL, -LARGEST_TIME, LARGEST_TIME)
# Differences of a device's clock may come out a hair below zero.
SECONDS = Range(REAL, -0.001, 1e9)
SHARE = Range(REAL, 0.0, 1.0)
COUNT = Range((int,), 0, LARGEST_COUNT)
LOSS = Range(REAL, -LARGEST_FLOAT, LARGEST_FLOAT, finite=False)
QUANTITY = Range(REAL, 0.0, 1e30)

FIELDS: dict[str, Range] = {
    "rank": Range((int,), 0, MOST_RANKS - 1),
    "world_size": Range((int,), 1, MOST_RANKS),
    "step": COUNT,
    "mono": TIME,
    "wall": TIME,
    "samples": Range(REAL, 0.0, 1e15),
    "loss": LOSS,
    "lr": LOSS,
    "data_wait": SECONDS,
    "compute": SECONDS,
    "communication": SECONDS,
    "memory": COUNT,
    "utilisation": SHARE,
    "memory_bytes": COUNT,
    "power_watts": Range(REAL, 0.0, 1e7),
    "temperature_c": Range(REAL, -273.15, 1e4),
    "clock_mhz": Range(REAL, 0.0, 1e7),
    "clock_max_mhz": Range(REAL, 0.0, 1e7),
    "foreign_processes": COUNT,
    "foreign_share": SHARE,
    "own_memory_bytes": COUNT,
}
# Of the facts, those that a figure is computed from.
FACTS: dict[str, Range] = {
    "flops_per_sample": QUANTITY,
    "hardware_flops_per_sample": QUANTITY,
    "bytes_per_sample": QUANTITY,
    "peak_flops": QUANTITY,
    "peak_bandwidth": QUANTITY,
    "process_started": TIME,
    "resumed_step": COUNT,
    "epoch": COUNT,
    "epochs": COUNT,
    "steps_per_epoch": COUNT,
    "seconds": SECONDS,
    "clock_drift": TIME,
    "samples": COUNT,
    "trained_before": SECONDS,
    "uncounted_trainings": COUNT,
    "evaluating_share": SHARE,
    "lines_in_bursts": COUNT,
    "line_bursts": COUNT,
    "training_samples": COUNT,
    "validation_samples": COUNT,
}


def number_in(facts: dict[str, Any], name: str) -> float | None:
    """Return the number that `facts` holds under a name of FACTS; None where it is absent or no number."""
    value = facts.get(name)
    return value if type(value) in REAL and FACTS[name].holds(value) else None


def count_in(facts: dict[str, Any], name: str) -> int | None:
    """Like `number_in` for whole numbers."""
    value = facts.get(name)
    return value if type(value) is int and FACTS[name].holds(value) else None


def text_in(facts: dict[str, Any], name: str) -> str | None:
    """Return the text that `facts` hold under a name, cut where it is no longer a name; None for no text."""
    value = facts.get(name)
    return value[:LONGEST_TEXT] if isinstance(value, str) and value.strip() else None


def texts_in(facts: dict[str, Any], name: str) -> list[str]:
    """Return the list that `facts` holds under a name, as text; empty where it holds anything else."""
    value = facts.get(name)
    return [str(each) for each in value] if isinstance(value, list) else []


def quantities_in(facts: dict[str, Any], name: str) -> dict[str, float]:
    """Return the positive numbers that `facts` hold by name under a name; empty where they hold none."""
    value = facts.get(name)
    pairs = list(value.items())[:MOST_NAMES] if isinstance(value, dict) else []
    return {
        key[:LONGEST_TEXT]: number
        for key, number in pairs
        if isinstance(key, str) and key.strip() and QUANTITY.holds(number) and number > 0
    }


def impossible_fact(facts: dict[str, Any]) -> str | None:
    """Return the name of a number in `facts` that is outside its range; anything else is a user's own."""
    for name in facts.keys() & FACTS.keys():
        value = facts[name]
        # A float where a count belongs is no number that is used; an infinite one cannot be true.
        known = FACTS[name]._replace(types=REAL)
        if type(value) in REAL and not known.holds(value):
            return name
    return None
