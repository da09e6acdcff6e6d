"""The comparison of frameworks as plain cells, for every layout that is made of text."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence

from trainmark.measure.figure import Ratio
from trainmark.pages import number
from trainmark.report.format.doubt_words import doubt_name
from trainmark.report.format.table import Table
from trainmark.report.format.words import Lang, words
from trainmark.report.sections.frameworks import FrameworkRow, FrameworkTable, published_figure

Cell = Callable[[FrameworkRow], str]
RIGHT_ALIGNED = frozenset({"throughput", "n", "memory", "first_step", "settling"})
# Columns in which a run may have nothing to say at all.
OPTIONAL = frozenset({"compiler", "speedup", "best_published", "doubts"})


def columns(table: FrameworkTable, lang: Lang) -> dict[str, Cell]:
    """What each column shows of a row, by the name of its word and in the order of the page."""
    t = words(lang)
    shown: dict[str, Cell] = {
        "placed": lambda row: row.result.key.topology,
        "framework": lambda row: " ".join(filter(None, (row.name, row.result.key.framework_version))),
        "layout": lambda row: row.result.key.layout or number.MISSING,
        "compiler": lambda row: row.result.key.compiler or "",
        "throughput": lambda row: number.throughput(row.result.throughput),
        "interval": lambda row: number.interval(row.result.interval),
        "n": lambda row: str(row.result.n),
        "share": lambda row: share(row, t),
        "speedup": lambda row: speedup(row.result.speedup) if row.result.key.devices > 1 else "",
        "memory": lambda row: number.gibibytes(row.result.memory_bytes),
        "first_step": lambda row: number.duration(row.result.first_step_seconds),
        "settling": lambda row: count(row.result.settling_steps),
        "best_published": lambda row: published(row, t),
        "conformance": lambda row: t[row.conformance.mark],
        "doubts": lambda row: ", ".join(doubt_name(doubt.code, lang) for doubt in row.result.doubts),
    }
    return {
        name: cell for name, cell in shown.items() if name not in OPTIONAL or _has_values(table.rows, cell)
    }


def table(frameworks: FrameworkTable, lang: Lang, without: Container[str] = ()) -> Table:
    shown = {name: cell for name, cell in columns(frameworks, lang).items() if name not in without}
    return Table(
        [header(name, frameworks, words(lang)) for name in shown],
        [[cell(row) for cell in shown.values()] for row in frameworks.rows],
        frozenset(place for place, name in enumerate(shown) if name in RIGHT_ALIGNED),
    )


def header(name: str, table: FrameworkTable, t: dict[str, str]) -> str:
    return {"throughput": table.unit, "n": "n"}.get(name) or t[name]


def share(row: FrameworkRow, t: dict[str, str]) -> str:
    """`83.1 % [81.9, 84.6]`, or that it is the fastest."""
    if row.share is None:
        return number.MISSING
    if row.fastest:
        return t["fastest"]
    return f"{number.percent(row.share.value)} {share_bounds(row.share)}".strip()


def share_bounds(ratio: Ratio) -> str:
    return number.percent_interval(ratio.interval) if ratio.interval else ""


def speedup(ratio: Ratio | None) -> str:
    if ratio is None:
        return number.MISSING
    bounds = number.ratio_interval(ratio.interval) if ratio.interval else ""
    return f"×{number.ratio(ratio.value)} {bounds}".strip()


def count(steps: int | None) -> str:
    return number.MISSING if steps is None else str(steps)


def published(row: FrameworkRow, t: dict[str, str]) -> str:
    """`1,403.0 (dlperf-v1): 45 % of it`; empty where there is none."""
    standing = row.published
    if standing is None:
        return ""
    of = " " + t["a_device_of"].format(topology=standing.best.row.topology) if standing.per_device else ""
    share = t["of_published"].format(percent=number.percent(standing.ratio, 0))
    return f"{number.throughput(published_figure(standing))}{of} ({standing.best.source}): {share}"


def _has_values(rows: Sequence[FrameworkRow], cell: Cell) -> bool:
    return any(cell(row) for row in rows)
