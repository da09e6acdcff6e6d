"""Many steps of one rank as columns: a run of thousands of ranks has millions of steps, and each costs."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from operator import itemgetter
from typing import Any

from trainmark.events.ranges import FIELDS
from trainmark.events.schema import Step

REQUIRED = frozenset({"rank", "step"})
# What a line may leave out.
OPTIONAL = tuple(field.name for field in fields(Step) if field.name not in REQUIRED)


@dataclass(frozen=True)
class StepBlock:
    """Consecutive steps of one rank; a column is None where no step tells it, an entry where one does not."""

    rank: int
    steps: Sequence[int]
    columns: dict[str, Sequence[Any] | None]


def step_block(rows: Sequence[dict[str, Any]]) -> StepBlock | None:
    """Check and gather the step events in `rows`; None where a number cannot be true or ranks are mixed.

    The caller then decodes them one by one, which finds the place and the reason.
    """
    gathered = _columns(rows)
    ranks, steps = gathered["rank"], gathered["step"]
    if not (_possible(ranks, "rank") and _possible(steps, "step") and min(ranks) == max(ranks)):
        return None
    columns: dict[str, Sequence[Any] | None] = {}
    for name in OPTIONAL:
        column = gathered.get(name, ())
        known_values = [value for value in column if value is not None] if None in column else column
        if known_values and not _possible(known_values, name):
            return None
        columns[name] = column if known_values else None
    return StepBlock(ranks[0], steps, columns)


def _columns(rows: Sequence[dict[str, Any]]) -> dict[str, Sequence[Any]]:
    """The fields of all rows by name; quickly where all rows have the same ones, as a probe writes them."""
    names = tuple(rows[0])
    if REQUIRED.issubset(names) and set(map(len, rows)) == {len(names)}:
        with contextlib.suppress(KeyError):
            return dict(zip(names, zip(*map(itemgetter(*names), rows), strict=True), strict=True))
    return {name: [row.get(name) for row in rows] for name in (*REQUIRED, *OPTIONAL)}


def _possible(values: Sequence[Any], name: str) -> bool:
    """Whether all of them are within the range of the field."""
    known = FIELDS[name]
    kinds = set(map(type, values))
    if not kinds.issubset(known.types):
        return False
    # What may be NaN has no bounds, unless it is an integer that no float can hold.
    return _within(values, known.low or 0, known.high) if known.finite or int in kinds else True


def _within(values: Sequence[float], low: float, high: float) -> bool:
    """NaN passes through `min` and `max`, but not through a sum."""
    return low <= min(values) and max(values) <= high and (total := sum(values)) == total
