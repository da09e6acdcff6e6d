"""One measured value, with its spread and its target."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """`low` and `high` are the quartiles of the repeats; `target` is the most that is allowed."""

    what: str
    value: float
    unit: str
    target: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def holds(self) -> bool | None:
        return None if self.target is None else self.value <= self.target


def from_repeats(what: str, values: Sequence[float], unit: str, target: float | None = None) -> Row:
    """The median of the repeats; the machine is noisy, so the quartiles stand beside it."""
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return Row(what, middle, unit, target, low, high)


def table(rows: Sequence[Row]) -> str:
    lines = [("", "measured", "quartiles", "target", "")]
    for row in rows:
        spread = "" if row.low is None or row.high is None else f"{row.low:.3g} … {row.high:.3g}"
        target = "" if row.target is None else f"≤ {row.target:g} {row.unit}"
        verdict = {True: "holds", False: "FAILS", None: ""}[row.holds]
        lines.append((row.what, f"{row.value:.3g} {row.unit}", spread, target, verdict))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        f"{what:<{widths[0]}}  {value:>{widths[1]}}  {spread:>{widths[2]}}  {target:>{widths[3]}}  {verdict}"
        for what, value, spread, target, verdict in lines
    )
