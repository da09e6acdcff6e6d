"""Frameworks beside each other: one table a case, a row for each framework at each topology."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from trainmark.logs.ledger import Standing
from trainmark.measure.comparison import framework_comparisons
from trainmark.measure.figure import Ratio, Result
from trainmark.measure.key import Key
from trainmark.pages import label, number
from trainmark.pages.label import Series, by_series
from trainmark.pages.run import plot_scaling as lines
from trainmark.pages.run.answer import DoubtNote, doubt_marks
from trainmark.pages.run.plot_scaling import THROUGHPUT_NOTE
from trainmark.pages.run.results import meter, rate_cell, ratio_cell
from trainmark.pages.standing import standing_text
from trainmark.store.report import NOT_CHECKED, Conformance, RunReport
from trainmark.view import blocks
from trainmark.view.blocks import Block, Items, Section, Sentence, Span, Table, Text, only, without
from trainmark.view.chart.axis import columns, linear
from trainmark.view.chart.model import AT_FIRST, Bars, Chart, Figure, Mark, Panel, Plot, Whiskers, tone
from trainmark.view.message import Message, _

COMPARED = _(
    "The same case in each framework, the fastest first at each topology. The share is of the fastest; where"
    " its interval reaches 100 %, the two cannot be told apart."
)
BARS_NOTE = _("Median of the trials; the thin line is its interval.")
BEST_PUBLISHED = _("best published of the framework")
CONFORMANCE = {
    True: Span(_("conformant"), "mark conformant"),
    False: Span(_("not conformant"), "mark not_conformant"),
    None: Span(_("not checked"), "mark not_checked"),
}


@dataclass(frozen=True)
class FrameworkRow:
    """One framework at one topology; `share` is of the best one there, `published` of the same framework."""

    result: Result
    share: Ratio | None
    published: Standing | None
    conformance: Conformance

    @property
    def name(self) -> str:
        return label.framework(self.result.key)

    @property
    def is_fastest(self) -> bool:
        bounds = self.share.interval if self.share else None
        return bounds is not None and bounds.low == bounds.high == 1


@dataclass(frozen=True)
class FrameworkTable:
    """One case in several frameworks; `key` is what the rows share."""

    name: str
    key: Key
    rows: tuple[FrameworkRow, ...]

    @property
    def unit(self) -> str:
        return label.rate_unit(self.rows[0].result.unit)

    @property
    def frameworks(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(row.name for row in self.rows))

    @property
    def unlike(self) -> list[Message]:
        """What differs in each framework that does not conform."""
        differing = {
            (row.name, row.conformance.differs): None for row in self.rows if row.conformance.differs
        }
        return [
            _("{framework} is not conformant: {differs}", framework=name, differs="; ".join(differs))
            for name, differs in differing
        ]


def tables_of(report: RunReport) -> tuple[FrameworkTable, ...]:
    return framework_tables(report.results, report.standings, report.conformance)


def framework_tables(
    results: Sequence[Result], standings: Mapping[Key, Standing], conformance: Mapping[Key, Conformance]
) -> tuple[FrameworkTable, ...]:
    comparisons = framework_comparisons(results)
    names = label.distinguishing(each.key for each in comparisons)
    return tuple(
        FrameworkTable(
            label.series(each.key, names),
            each.key,
            tuple(
                FrameworkRow(
                    entrant.result,
                    entrant.share,
                    standings.get(entrant.result.key),
                    conformance.get(entrant.result.key, NOT_CHECKED),
                )
                for entrant in each.entrants
            ),
        )
        for each in comparisons
    )


def framework_section(tables: Sequence[FrameworkTable], notes: Sequence[DoubtNote]) -> Section | None:
    if not tables:
        return None
    named = [(table.name, table.unit, [row.result for row in table.rows]) for table in tables]
    names = ranked_names(results for _name, _unit, results in named)
    charts = [
        blocks.Chart(framework_bars(named, names), BARS_NOTE, _("Case"), title=_("Throughput by framework")),
        *(
            [blocks.Chart(plot, THROUGHPUT_NOTE, _("Case"), title=_("Scaling by framework"))]
            if (plot := framework_scaling(named, names))
            else []
        ),
    ]
    drawn = only("html", blocks.Charts(charts, names, _("framework"), FRAMEWORK_SERIES))
    cases = [Section(table.name, list(table_blocks(table, notes)), look="compared") for table in tables]
    explained = without("terminal", Sentence(COMPARED, "note"))
    return Section(_("Frameworks"), [explained, drawn, *cases])


def table_blocks(table: FrameworkTable, notes: Sequence[DoubtNote] = ()) -> Iterable[Block]:
    """Yield one case in several frameworks, for a page that has its heading."""
    yield without("terminal", Sentence(label.facts(table.key), "sub"))
    has_published = any(row.published for row in table.rows)
    scales = any(row.result.key.devices > 1 for row in table.rows)
    header: list[Text] = [
        *(_("topology"), _("framework"), table.unit, Span("n", "as-is"), _("share of the fastest")),
        *([_("speedup")] if scales else ()),
        *(_("memory (GiB)"), _("first step"), _("settled after (steps)")),
        *([BEST_PUBLISHED] if has_published else ()),
        _("conformance"),
    ]
    rows: list[list[Text]] = []
    for row in table.rows:
        topology = row.result.key.topology
        is_first = not rows or topology not in {each.result.key.topology for each in table.rows[: len(rows)]}
        rows.append([Span(topology, "main") if is_first else "", *_cells(row, notes, scales, has_published)])
    yield Table(header, rows, frozenset(range(2, len(header) - 1)), sortable=False)
    yield Items(table.unlike, "lines note")
    if has_published:
        lines = [
            Span((f"{row.name} {row.result.key.topology}:", standing_text(row.published)))
            for row in table.rows
            if row.published
        ]
        yield without("terminal", Section(BEST_PUBLISHED, [Items(lines)], folded=True))


def _cells(row: FrameworkRow, notes: Sequence[DoubtNote], scales: bool, has_published: bool) -> list[Text]:
    result = row.result
    setting = " · ".join(filter(None, (result.key.framework_version, result.key.layout, result.key.compiler)))
    speedup: Text = ""
    if result.key.devices > 1:
        speedup = ratio_cell(result.speedup) if result.speedup else number.MISSING
    return [
        [row.name, Span(setting, "under"), *doubt_marks(result, notes)],
        rate_cell(result),
        result.n,
        _share(row),
        *([speedup] if scales else ()),
        number.gibibytes(result.memory_bytes),
        number.duration(result.first_step_seconds),
        number.MISSING if result.settling_steps is None else result.settling_steps,
        *([_published(row.published)] if has_published else ()),
        CONFORMANCE[row.conformance.conformant],
    ]


def _share(row: FrameworkRow) -> Text:
    """`83.1 %` with its interval, or that it is the fastest."""
    if row.share is None:
        return number.MISSING
    if row.is_fastest:
        return [_("fastest"), meter(1.0)]
    bounds = number.percent_interval(row.share.interval) if row.share.interval else ""
    return [number.percent(row.share.value), Span(bounds, "under"), meter(row.share.value)]


def _published(standing: Standing | None) -> Text:
    """`1,403.0`, `45 % of it`, `dlperf-v1`."""
    if standing is None:
        return number.MISSING
    share, topology = number.percent(standing.ratio, 0), standing.best.row.topology
    told = _("{percent} of it", percent=share)
    if standing.per_device:
        told = _("{percent} of it; a device of {topology}", percent=share, topology=topology)
    return [
        number.throughput(published_figure(standing)),
        Span(told, "under"),
        Span(standing.best.source, "under"),
    ]


def published_figure(standing: Standing) -> float | None:
    """Return theirs: of all devices where they have as many as we, otherwise of one."""
    row = standing.best.row
    return row.per_device if standing.per_device else row.throughput


# Share of a topology's place that its bars fill.
ROOM = 0.8
# Tells the legend of this section from that of all series.
FRAMEWORK_SERIES = "framework-"
# A second series of the same framework, in another layout or version, has its colour but paler.
PALER = 0.55


# One case in several frameworks: its name, the unit of its rates, and the results.
Compared = tuple[str, str, Sequence[Result]]


def ranked_names(cases: Iterable[Sequence[Result]]) -> list[str]:
    """All frameworks of all cases, the fastest of the first first; each keeps its colour in all figures."""
    ranked: dict[str, None] = {}
    for results in cases:
        ranked |= {
            name: None
            for result in sorted(results, key=lambda result: -result.throughput)
            if (name := label.framework(result.key)) not in ranked
        }
    return list(ranked)


def framework_bars(cases: Sequence[Compared], legend: Sequence[str]) -> Plot:
    figures = [
        Figure(_label(name, cases), {"": _bars(unit, results, legend)}) for name, unit, results in cases
    ]
    return Plot("framework_bars", figures, legend)


def framework_scaling(cases: Sequence[Compared], legend: Sequence[str]) -> Plot | None:
    """None unless some framework has two device counts."""
    figures = []
    for name, _unit, results in cases:
        groups = [group for group in _series(results, legend) if group.scales]
        marks = [
            mark
            for group in groups
            for mark in lines.throughput_marks(group, _place(group, legend), FRAMEWORK_SERIES)
        ]
        if marks:
            figures.append(Figure(_label(name, cases), lines.throughput_views(groups, marks)))
    return Plot("framework_scaling", figures) if figures else None


def _place(group: Series, legend: Sequence[str]) -> int:
    return legend.index(label.framework(group.key))


def _label(name: str, cases: Sequence[Compared]) -> str:
    """A name to choose by, where there is a choice."""
    return name if len(cases) > 1 else ""


def _series(results: Sequence[Result], legend: Sequence[str]) -> list[Series]:
    """By framework, version and layout; a name says of these only what tells two series apart."""
    groups = by_series(sorted(results, key=lambda result: legend.index(label.framework(result.key))))
    counts = Counter(label.framework(group.key) for group in groups)
    several = {framework for framework, count in counts.items() if count > 1}
    return [Series(_series_name(group.results[0], several), group.key, group.results) for group in groups]


def _series_name(result: Result, several: set[str]) -> str:
    framework = label.framework(result.key)
    if framework not in several:
        return framework
    return " ".join(filter(None, (framework, result.key.framework_version, result.key.layout)))


def _bars(unit: str, results: Sequence[Result], legend: Sequence[str]) -> Chart:
    groups = _series(results, legend)
    topologies = list(dict.fromkeys(result.key.topology for result in results))
    seen: set[int] = set()
    marks: list[Mark] = []
    for place, group in enumerate(groups):
        index = _place(group, legend)
        offset = ROOM * ((place + 0.5) / len(groups) - 0.5)
        at = [topologies.index(result.key.topology) + offset for result in group.results]
        marks += _bar(group, index, at, 0.9 * ROOM / len(groups), paler=index in seen)
        seen.add(index)
    tops = [value for mark in marks if isinstance(mark, Bars) for value in mark.y] + lines.heights(marks)
    return Chart(replace(columns(topologies), title=_("topology")), [Panel(linear(tops, unit), marks)])


def _bar(group: Series, index: int, at: Sequence[float], width: float, paler: bool) -> list[Mark]:
    results, series, shown = group.results, f"{FRAMEWORK_SERIES}{index}", index < AT_FIRST
    texts = [
        f"{r.key.topology}: {number.throughput(r.throughput)} {label.rate_unit(r.unit)}"
        f" {number.interval(r.interval)}"
        for r in results
    ]
    low = [r.interval.low if r.interval else None for r in results]
    high = [r.interval.high if r.interval else None for r in results]
    return [
        Bars(
            tone(index),
            series,
            shown,
            PALER if paler else 1.0,
            x=at,
            y=[r.throughput for r in results],
            texts=texts,
            name=group.name,
            width=width,
        ),
        Whiskers("ink", series, shown, at=at, low=low, high=high, width=1.25),
    ]
