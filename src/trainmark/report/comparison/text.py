"""Runs against a baseline as text, Markdown and JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any

from trainmark.base.text import one_line
from trainmark.measure.cost import Cost
from trainmark.measure.history.facts import FactChange
from trainmark.measure.history.recorded import parts_only_in
from trainmark.report.comparison.model import (
    MEANING,
    ComparisonRow,
    Comparisons,
    ComparisonTable,
    PeakShares,
)
from trainmark.report.format import number
from trainmark.report.format.markup import code, plain
from trainmark.report.format.table import Table
from trainmark.report.history.cells import fact_text, named
from trainmark.report.render.framework_markdown import notes
from trainmark.report.render.json_report import table_tree
from trainmark.report.render.terminal import framework_lines
from trainmark.report.sections import framework_cells

# Differences that stand in a row, and the longest; JSON has more.
MOST_DIFFERENCES, LONGEST_DIFFERENCE = 4, 80
MOST_IN_JSON, LONGEST_IN_JSON = 100, 1000
NOTHING_COMMON = "No case is on both sides."
NO_COST = Cost(None, None, None)
PEAK_NOTE = "Shares of the peak: MFU, HFU, and the MFU that other codes would give."


def as_text(comparisons: Comparisons, width: int | None = None) -> str:
    table = rows_table(comparisons)
    lines = [*table.lines(width), "", MEANING] if table.rows else [NOTHING_COMMON]
    lines += map(one_line, comparisons.doubted)
    if comparisons.priced:
        costs = cost_table(comparisons)
        lines += ["", *costs.lines(width)] if costs else []
        lines.append(f"cost and kWh: a million samples, at {comparisons.priced}")
    if peaks := peaks_table(comparisons):
        lines += ["", *peaks.lines(width), PEAK_NOTE]
    lines += [f"only in {one_line(side)}: {one_line(case)}" for side, case in comparisons.alone]
    lines += [f"{one_line(case)}: {one_line(text)}" for case, text in published(comparisons)]
    for frameworks in comparisons.frameworks:
        lines += ["", *framework_lines(frameworks, width)]
    return "\n".join(lines) + "\n"


def as_markdown(comparisons: Comparisons) -> str:
    table = rows_table(comparisons, mark=code)
    parts = [table.markdown() if table.rows else NOTHING_COMMON, f"`{MEANING}`"]
    if doubted := comparisons.doubted:
        parts.append("\n".join(f"- {plain(line)}" for line in doubted))
    if comparisons.priced:
        costs = cost_table(comparisons)
        parts += [costs.markdown()] if costs else []
        parts.append(plain(f"Cost and kWh: a million samples, at {comparisons.priced}."))
    if peaks := peaks_table(comparisons):
        parts += [peaks.markdown(), PEAK_NOTE]
    if comparisons.alone:
        parts.append("\n".join(f"- only in {code(side)}: {code(case)}" for side, case in comparisons.alone))
    if standings := published(comparisons):
        parts.append("\n".join(f"- {code(case)}: {plain(text)}" for case, text in standings))
    for frameworks in comparisons.frameworks:
        parts += [
            plain(frameworks.name),
            framework_cells.table(frameworks, "en").markdown(),
            notes(frameworks),
        ]
    return "\n\n".join(filter(None, parts)) + "\n"


def as_json(comparisons: Comparisons) -> str:
    """The first pair under the names of a comparison of two; `comparisons` has all pairs."""
    pairs = [_tree(table) for table in comparisons.tables]
    document = {
        **pairs[0],
        "frameworks": [table_tree(frameworks) for frameworks in comparisons.frameworks],
        "runs": list(comparisons.runs),
        "comparisons": pairs,
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def rows_table(comparisons: Comparisons, mark: Callable[[str], str] = str) -> Table:
    """Two runs in columns of their own figures, more of them in one column a run."""
    if len(comparisons.tables) == 1:
        return _pair(comparisons.tables[0], bool(comparisons.priced), mark)
    header = ["case", comparisons.baseline, *(table.after for table in comparisons.tables), "differs"]
    rows = []
    for known, cells in comparisons.grid():
        named = zip(comparisons.runs[1:], cells, strict=True)
        differs = [f"{run}: {text}" for run, row in named if row and (text := _differences(row))]
        own = [_against(row) for row in cells]
        rows.append([known.case, number.throughput(known.before), *own, "; ".join(differs)])
    return Table(header, rows, right=frozenset(range(1, len(header) - 1)))


def cost_table(comparisons: Comparisons) -> Table | None:
    """The cost of a million samples in each of several runs; of two it stands beside their figures."""
    if not comparisons.priced or len(comparisons.tables) == 1:
        return None
    rows = []
    for known, cells in comparisons.grid():
        sides = [known.costs and known.costs[0], *(row and row.costs and row.costs[1] for row in cells)]
        rows.append([known.case, *(_cost(side) if side else number.MISSING for side in sides)])
    return Table(["case", *comparisons.runs], rows, right=frozenset(range(1, len(comparisons.runs) + 1)))


def peaks_table(comparisons: Comparisons) -> Table | None:
    """MFU, HFU and other codes' MFU of each run, one after the other; None where no case has conventions."""
    rows = []
    for known, cells in comparisons.grid():
        sides = [known.peaks[0], *(row.peaks[1] if row else PeakShares() for row in cells)]
        if any(side.conventions for side in sides):
            rows.append((known.case, sides))
    names = dict.fromkeys(name for _, sides in rows for side in sides for name, _ in side.conventions)
    if not names:
        return None
    table = [
        [
            case,
            _arrows(side.mfu for side in sides),
            _arrows(side.hfu for side in sides),
            *(_arrows(dict(side.conventions).get(name) for side in sides) for name in names),
        ]
        for case, sides in rows
    ]
    header = ["case", "MFU", "HFU", *names]
    return Table(header, table, frozenset(range(1, len(header))))


def _arrows(shares: Iterable[float | None]) -> str:
    return " → ".join(map(number.percent, shares))


def published(comparisons: Comparisons) -> list[tuple[str, str]]:
    return [(row.case, row.published) for table in comparisons.tables for row in table.rows if row.published]


def _differences(row: ComparisonRow) -> str:
    """`command −--lr 0.1 +--width 1024; driver 550.54 → 560.28; and 3 more`."""
    texts = [difference_text(fact) for fact in row.differences[:MOST_DIFFERENCES]]
    more = len(row.differences) - len(texts)
    return "; ".join([*texts, *([f"and {more} more"] if more else [])])


def difference_text(fact: FactChange) -> str:
    """Return what differs in a few words; of commands the words that one of them has."""
    if fact.name == "command" and fact.before and fact.after:
        gone, come = parts_only_in(fact.before, fact.after), parts_only_in(fact.after, fact.before)
        parts = [*(f"−{part}" for part in gone), *(f"+{part}" for part in come)]
        text = " ".join(parts) or "in another order"
    else:
        text = " → ".join(fact_text(fact.name, value, "none") for value in (fact.before, fact.after))
    text = f"{named(fact.name, 'en')} {text}"
    return text if len(text) <= LONGEST_DIFFERENCE else f"{text[: LONGEST_DIFFERENCE - 1]}…"


def interval(row: ComparisonRow) -> str:
    if row.low is None or row.high is None:
        return number.MISSING
    return f"[{row.low:.3f}, {row.high:.3f}]"


def _pair(table: ComparisonTable, priced: bool, mark: Callable[[str], str]) -> Table:
    header = ["", "case", "before", "after", "ratio", "interval", "differs"]
    header += ["cost before", "cost after", "kWh before", "kWh after"] if priced else []
    rows = [
        [
            mark(row.mark),
            row.case,
            number.throughput(row.before),
            number.throughput(row.after),
            f"×{row.ratio:.3f}",
            interval(row),
            _differences(row),
            *(_costs(row) if priced else ()),
        ]
        for row in table.rows
    ]
    return Table(header, rows, right=frozenset({2, 3, 4, 7, 8, 9, 10}), trusted=frozenset({0}))


def _costs(row: ComparisonRow) -> list[str]:
    before, after = row.costs or (NO_COST, NO_COST)
    money = [number.significant(cost.per_million, 3) for cost in (before, after)]
    return money + [number.significant(cost.kwh_per_million, 3) for cost in (before, after)]


def _against(row: ComparisonRow | None) -> str:
    return f"{number.throughput(row.after)} ×{row.ratio:.3f} {row.mark}" if row else number.MISSING


def _cost(cost: Cost) -> str:
    """`1.92, 0.200 kWh`; the energy where it is known."""
    energy = f", {number.significant(cost.kwh_per_million, 3)} kWh" if cost.kwh_per_million else ""
    return number.significant(cost.per_million, 3) + energy


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
