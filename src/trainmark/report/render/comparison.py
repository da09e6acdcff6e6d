"""Before against after, one mark a row: `+` faster, `-` slower, `~` no certain change, `?` cannot be told."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace

from trainmark.report.format import number
from trainmark.report.format.markup import code, plain
from trainmark.report.format.table import Table
from trainmark.report.render.framework_markdown import notes
from trainmark.report.render.json_report import table_tree
from trainmark.report.render.terminal import framework_lines
from trainmark.report.sections import framework_cells
from trainmark.report.sections.frameworks import FrameworkTable
from trainmark.visible import one_line

MEANING = "+ faster   - slower   ~ no certain change   ? too few trials to say"
NOTHING_COMMON = "No case is on both sides."


@dataclass(frozen=True)
class ComparisonRow:
    """One case on both sides; `ratio` is after ÷ before; `differs` names what else changed.

    `published` says where the second stands among published results.
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

    @property
    def mark(self) -> str:
        if self.low is None or self.high is None:
            return "?"
        if not self.changed:
            return "~"
        return "+" if self.ratio > 1 else "-"


@dataclass(frozen=True)
class ComparisonTable:
    """Two runs side by side, and the cases that only one of them holds.

    `frameworks` sets those of one run against those of the other.
    """

    before: str
    after: str
    rows: tuple[ComparisonRow, ...]
    only_before: tuple[str, ...] = ()
    only_after: tuple[str, ...] = ()
    frameworks: tuple[FrameworkTable, ...] = ()


def as_text(comparison: ComparisonTable, width: int | None = None) -> str:
    table = _table([(row.mark, *_cells(row)) for row in comparison.rows])
    lines = [*table.lines(width), "", MEANING] if table.rows else [NOTHING_COMMON]
    lines += [f"only in {one_line(side)}: {one_line(case)}" for side, case in _alone(comparison)]
    lines += [f"{one_line(row.case)}: {one_line(row.published)}" for row in comparison.rows if row.published]
    for frameworks in comparison.frameworks:
        lines += ["", *framework_lines(frameworks, width)]
    return "\n".join(lines) + "\n"


def as_markdown(comparison: ComparisonTable) -> str:
    table = _table([(code(row.mark), *_cells(row)) for row in comparison.rows])
    parts = [table.markdown() if table.rows else NOTHING_COMMON, f"`{MEANING}`"]
    if alone := _alone(comparison):
        parts.append("\n".join(f"- only in {code(side)}: {code(case)}" for side, case in alone))
    if published := [
        f"- {code(row.case)}: {plain(row.published)}" for row in comparison.rows if row.published
    ]:
        parts.append("\n".join(published))
    for frameworks in comparison.frameworks:
        parts += [
            plain(frameworks.name),
            framework_cells.table(frameworks, "en").markdown(),
            notes(frameworks),
        ]
    return "\n\n".join(filter(None, parts)) + "\n"


def as_json(comparison: ComparisonTable) -> str:
    rows = [{**asdict(row), "mark": row.mark} for row in comparison.rows]
    document = {**asdict(replace(comparison, frameworks=())), "rows": rows}
    document["frameworks"] = [table_tree(frameworks) for frameworks in comparison.frameworks]
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def _table(rows: list[tuple[str, ...]]) -> Table:
    header = ("", "case", "before", "after", "ratio", "interval", "differs")
    return Table(header, rows, right=frozenset({2, 3, 4}), trusted=frozenset({0}))


def _cells(row: ComparisonRow) -> tuple[str, ...]:
    known = row.low is not None and row.high is not None
    return (
        row.case,
        number.throughput(row.before),
        number.throughput(row.after),
        f"×{row.ratio:.3f}",
        f"[{row.low:.3f}, {row.high:.3f}]" if known else number.MISSING,
        ", ".join(row.differs),
    )


def _alone(comparison: ComparisonTable) -> list[tuple[str, str]]:
    return [(comparison.before, case) for case in comparison.only_before] + [
        (comparison.after, case) for case in comparison.only_after
    ]
