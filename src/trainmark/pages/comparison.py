"""Runs against a baseline: each case with its ratio and a mark (faster, slower, …), and all of it as JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from trainmark.measure.cost import Cost
from trainmark.measure.figure import Result
from trainmark.measure.history.facts import FactChange
from trainmark.view.blocks import Section
from trainmark.view.message import Message, _, joined

MARKS = {
    "+": _("faster"),
    "-": _("slower"),
    "~": _("no certain change"),
    "?": _("too few trials to say"),
    "!": _("differs, but a side is not to be relied on"),
}
# Differences in JSON, and the longest.
MOST_IN_JSON, LONGEST_IN_JSON = 100, 1000
NO_COST = Cost(None, None, None)


@dataclass(frozen=True)
class PeakShares:
    """What one side reaches of the peak: MFU, HFU, and MFU by the conventions of other codes."""

    mfu: float | None = None
    hfu: float | None = None
    conventions: tuple[tuple[str, float], ...] = ()


def peak_shares(result: Result) -> PeakShares:
    model, hardware = result.utilisation, result.hardware_utilisation
    return PeakShares(
        model.value if model else None,
        hardware.value if hardware else None,
        tuple((convention.name, convention.utilisation.value) for convention in result.conventions),
    )


@dataclass(frozen=True)
class ComparisonRow:
    """One case on both sides; `ratio` is after ÷ before; `differs` names what else changed.

    `published` says where the second stands among published results; `failed` whether the row fails the
    command, `not_judged` whether it would but for doubts. Costs, shares of the peak, doubts and verdicts
    (empty where there is nothing to doubt) are those of both sides.
    """

    case: str
    before: float
    after: float
    ratio: float
    low: float | None
    high: float | None
    changed: bool
    differs: tuple[str, ...] = ()
    published: str = ""
    failed: bool = False
    unit: str = ""
    costs: tuple[Cost, Cost] | None = None
    peaks: tuple[PeakShares, PeakShares] = (PeakShares(), PeakShares())
    differences: tuple[FactChange, ...] = ()
    doubts: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    unreliable: tuple[bool, bool] = (False, False)
    verdicts: tuple[str, str] = ("", "")
    not_judged: bool = False

    @property
    def mark(self) -> str:
        if self.low is None or self.high is None:
            return "?"
        if not self.changed:
            return "~"
        if any(self.unreliable):
            return "!"
        return "+" if self.ratio > 1 else "-"


@dataclass(frozen=True)
class ComparisonTable:
    """Two runs side by side, and the cases that only one of them holds."""

    before: str
    after: str
    rows: tuple[ComparisonRow, ...]
    only_before: tuple[str, ...] = ()
    only_after: tuple[str, ...] = ()

    @property
    def counts(self) -> Message:
        """`2 faster, 1 no certain change`."""
        marks = Counter(row.mark for row in self.rows)
        counted = [(marks[mark], meaning) for mark, meaning in MARKS.items() if marks[mark]]
        return joined([_("{count} {what}", count=count, what=what) for count, what in counted], ", ")

    @property
    def doubted(self) -> list[Message]:
        """`train 1n1g, before and after: Do not rely on this: …`, for each side of which there is a doubt."""
        lines = []
        for row in self.rows:
            before, after = row.verdicts
            sides: dict[str, str] = {before: self.before, after: self.after}
            if before == after:
                sides = {before: _("{one} and {other}", one=self.before, other=self.after)}
            for verdict, side in sides.items():
                if verdict:
                    doubt = _("{case}, {side}: {verdict}", case=row.case, side=side, verdict=verdict)
                    lines.append(doubt)
        return lines

    @property
    def alone(self) -> list[tuple[str, str]]:
        """The run and the case, where no other run has it."""
        return [(self.before, case) for case in self.only_before] + [
            (self.after, case) for case in self.only_after
        ]


@dataclass(frozen=True)
class Frameworks:
    """One case in several frameworks: what a page shows, and its JSON."""

    shown: Section
    record: Mapping[str, Any]


@dataclass(frozen=True)
class Comparisons:
    """Each run against the first; `frameworks` sets those of one run against those of the others."""

    tables: tuple[ComparisonTable, ...]
    frameworks: tuple[Frameworks, ...] = ()
    priced: str = ""
    """The price that costs were counted with, in words; empty without one."""

    @property
    def baseline(self) -> str:
        return self.tables[0].before

    @property
    def runs(self) -> tuple[str, ...]:
        return (self.baseline, *(table.after for table in self.tables))

    @property
    def doubted(self) -> list[Message]:
        """What is to be doubted of each case and run, each once."""
        return list(dict.fromkeys(line for table in self.tables for line in table.doubted))

    @property
    def alone(self) -> list[tuple[str, str]]:
        """Cases that only one side of some comparison has, each once."""
        return list(dict.fromkeys(pair for table in self.tables for pair in table.alone))

    def grid(self) -> list[tuple[ComparisonRow, tuple[ComparisonRow | None, ...]]]:
        """Return for each case of the baseline some row of it, and its row in each comparison.

        A case that another run has twice, in two versions, is there twice.
        """
        places: dict[tuple[str, int], list[ComparisonRow | None]] = {}
        for column, table in enumerate(self.tables):
            seen: Counter[str] = Counter()
            for row in table.rows:
                cells = places.setdefault((row.case, seen[row.case]), [None] * len(self.tables))
                cells[column] = row
                seen[row.case] += 1
        return [(next(row for row in cells if row), tuple(cells)) for cells in places.values()]


def as_json(comparisons: Comparisons) -> str:
    return json.dumps(comparisons_record(comparisons), indent=2, allow_nan=False) + "\n"


def comparisons_record(comparisons: Comparisons) -> dict[str, Any]:
    """The first pair under the names of a comparison of two; `comparisons` has all pairs."""
    pairs = [_tree(table) for table in comparisons.tables]
    return {
        **pairs[0],
        "frameworks": [dict(frameworks.record) for frameworks in comparisons.frameworks],
        "runs": list(comparisons.runs),
        "comparisons": pairs,
    }


def _tree(table: ComparisonTable) -> dict[str, Any]:
    return {
        "before": table.before,
        "after": table.after,
        "rows": [_row(row) for row in table.rows],
        "only_before": list(table.only_before),
        "only_after": list(table.only_after),
    }


def _row(row: ComparisonRow) -> dict[str, Any]:
    left_out = ("costs", "peaks", "differences", "doubts", "unreliable", "verdicts")
    tree = {name: value for name, value in asdict(row).items() if name not in left_out}
    peaks_before, peaks_after = row.peaks
    before, after = row.costs or (NO_COST, NO_COST)
    return {
        **tree,
        "mark": row.mark,
        "cost_before": before.per_million,
        "cost_after": after.per_million,
        "kwh_before": before.kwh_per_million,
        "kwh_after": after.kwh_per_million,
        "mfu_before": peaks_before.mfu,
        "mfu_after": peaks_after.mfu,
        "hfu_before": peaks_before.hfu,
        "hfu_after": peaks_after.hfu,
        "conventions_before": dict(peaks_before.conventions),
        "conventions_after": dict(peaks_after.conventions),
        "differences": [
            {
                "name": fact.name,
                "before": fact.before and fact.before[:LONGEST_IN_JSON],
                "after": fact.after and fact.after[:LONGEST_IN_JSON],
            }
            for fact in row.differences[:MOST_IN_JSON]
        ],
        "doubts_before": list(row.doubts[0]),
        "doubts_after": list(row.doubts[1]),
        "unreliable_before": row.unreliable[0],
        "unreliable_after": row.unreliable[1],
    }
