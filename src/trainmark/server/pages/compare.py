"""Any runs against the first of them, case by case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from trainmark.measure.history.facts import FactChange, settings_that_differ
from trainmark.measure.history.series import RunPoint
from trainmark.measure.statistics import CONFIDENCE, ratio_interval
from trainmark.pages.comparison import ComparisonRow, Comparisons, ComparisonTable
from trainmark.pages.comparison_page import comparison_page
from trainmark.pages.facts import fact_title
from trainmark.pages.history import SEVERE
from trainmark.pages.label import rate_unit
from trainmark.server.access.guard import viewing
from trainmark.server.access.tokens import Role
from trainmark.server.database import run_queries
from trainmark.server.database.case_queries import case_keys
from trainmark.server.database.rows import ResultRow, RunRow, weighty
from trainmark.server.pages.respond import render_page, requires, show_page
from trainmark.view.blocks import Block, Section, Sentence, Table
from trainmark.view.message import _

MOST_RUNS = 8
RECENT_RUNS = 40
MOST_CHART_ROWS = 40
LONGEST_VALUE = 200
MAY_DIFFER = ("command", "device", "framework_version")
Identity = tuple[Any, ...]


@requires(Role.READ)
def compare(request: Request) -> Response:
    uuids = list(dict.fromkeys(request.query_params.getlist("run")))[:MOST_RUNS]
    with viewing(request) as connection:
        runs = run_queries.runs_by_uuid(connection, uuids)
        if len(runs) < 2:
            recent = run_queries.runs(connection, most=RECENT_RUNS)
            heads = run_queries.headlines(connection, recent)
            return render_page(
                request, "compare.html.j2", "/runs", recent=recent, heads=heads, most=MOST_RUNS
            )
        results = run_queries.results(connection, [run.id for run in runs])
        keys = case_keys(connection, {result.case_id for result in results})
    sides = [[result for result in results if result.run_uuid == run.uuid] for run in runs]
    page = comparison_page(compared(runs, sides, keys), MOST_CHART_ROWS)
    differing = Section(_("What differs between the environments"), [_environments(runs, sides)])
    return show_page(request, replace(page, blocks=(*page.blocks, differing)), "/runs", runs=runs)


def compared(
    runs: Sequence[RunRow], sides: Sequence[Sequence[ResultRow]], keys: Mapping[int, Mapping[str, Any]]
) -> Comparisons:
    """Set each run against the first; cases are the same where all but device and version is."""
    identified = [{_identity(keys[row.case_id], row.unit): row for row in side} for side in sides]
    names = _names(runs)
    return Comparisons(
        tuple(
            ComparisonTable(
                names[0],
                name,
                tuple(
                    _row(old, own[identity], keys)
                    for identity, old in identified[0].items()
                    if identity in own
                ),
                tuple(row.label for identity, row in identified[0].items() if identity not in own),
                tuple(row.label for identity, row in own.items() if identity not in identified[0]),
            )
            for name, own in zip(names[1:], identified[1:], strict=True)
        )
    )


def _names(runs: Sequence[RunRow]) -> list[str]:
    """Return the runs' names; where two have the same, with the machine and the first digits of the UUID."""
    often = Counter(run.name for run in runs)
    return [run.name if often[run.name] == 1 else f"{run.name} {run.machine} {run.uuid[:8]}" for run in runs]


def _identity(key: Mapping[str, Any], unit: str) -> Identity:
    return (unit, *sorted((name, str(value)) for name, value in key.items() if name not in MAY_DIFFER))


def _row(before: ResultRow, after: ResultRow, keys: Mapping[int, Mapping[str, Any]]) -> ComparisonRow:
    bounds = ratio_interval(after.values, before.values)
    sure = bounds is not None and bounds.confidence >= CONFIDENCE
    low, high = (bounds.low, bounds.high) if bounds and sure else (None, None)
    old, new = (keys[row.case_id].get("device") for row in (before, after))
    devices = [] if old == new else [FactChange("device", old, new, 1.0)]
    points = [RunPoint(row.run_uuid, row.time, row.values, row.facts) for row in (before, after)]
    settings = [*devices, *settings_that_differ(*points)]
    return ComparisonRow(
        case=before.label,
        before=before.throughput,
        after=after.throughput,
        ratio=after.throughput / before.throughput,
        low=low,
        high=high,
        changed=low is not None and high is not None and not low <= 1 <= high,
        differences=tuple(settings),
        doubts=(before.doubts, after.doubts),
        unreliable=(_is_unreliable(before), _is_unreliable(after)),
        unit=rate_unit(after.unit),
    )


def _is_unreliable(row: ResultRow) -> bool:
    return not SEVERE.isdisjoint(weighty(row.doubts, row.minor_doubts))


def _environments(runs: Sequence[RunRow], sides: Sequence[Sequence[ResultRow]]) -> Block:
    """The facts that differ between the runs' first results, each with its value in every run."""
    facts = [side[0].facts if side else {} for side in sides]
    names = sorted({name for own in facts for name in own})
    rows = [(name, [str(own.get(name, ""))[:LONGEST_VALUE] for own in facts]) for name in names]
    differing = [(fact_title(name), *values) for name, values in rows if len(set(values)) > 1]
    if not differing:
        return Sentence(_("The recorded facts are the same."))
    return Table((_("fact"), *(run.name for run in runs)), differing, look="as-written")
