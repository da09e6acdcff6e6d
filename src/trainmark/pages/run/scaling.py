"""How a run scales, where what is missing to linear scaling went, and where the time of a step goes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean

from trainmark.measure.comparison import ScalingKind, ScalingPoint, ScalingSeries, scaling
from trainmark.measure.figure import RankTimes, Result, Straggler, TimeShares
from trainmark.pages import label, number
from trainmark.pages.run import plot_scaling
from trainmark.pages.run.results import ratio_cell, share_cell
from trainmark.view import blocks
from trainmark.view.blocks import Bar, Block, Items, Section, Sentence, Span, Table, Text, only
from trainmark.view.message import Message, _, joined

# Of a case on hundreds of nodes the slowest are what a reader looks for.
MOST_NODES = 16
LOSSES = {
    "communication": _("communication"),
    "straggling": _("waiting for the slowest"),
    "data": _("data"),
    "compute": _("slower compute"),
    "other": _("rest"),
}
SHARES = {
    "compute": _("compute"),
    "communication": _("communication"),
    "data": _("data"),
    "other": _("rest"),
}
KINDS = {ScalingKind.WEAK: _("Weak scaling"), ScalingKind.STRONG: _("Strong scaling")}
SERIES = _("Series")
LOSS_NOTE = _(
    "Efficiency and losses add up to 100 %. A loss is what that part takes of a sample's time beyond what it"
    " takes on the fewest devices; below zero it takes less."
)
TIME_NOTE = _(
    "Shares of the wall time of the steady window, over the ranks. Communication is time in which a rank did"
    " nothing but wait for the others; what ran beside computing does not count. Own time is a step without"
    " that waiting."
)


@dataclass(frozen=True)
class NamedScaling:
    """One series under its name."""

    name: Message
    series: ScalingSeries


def scaling_section(results: Sequence[Result], compared: bool) -> Section | None:
    """Plots and tables of all series; `compared` says that the plots of the frameworks show them already."""
    tables = named_scaling(results)
    groups = () if compared else label.by_series(results)
    throughput = plot_scaling.throughput(groups)
    drawn: list[Block] = []
    if throughput:
        charts = [blocks.Chart(throughput, plot_scaling.THROUGHPUT_NOTE, title=_("Throughput"))]
        if plot := plot_scaling.efficiency(groups):
            note = _("Speed-up divided by the device count.")
            charts.append(blocks.Chart(plot, note, title=_("Efficiency")))
        drawn.append(blocks.Charts(charts, throughput.legend, SERIES))
    if not (drawn or tables):
        return None
    times, silent = case_times(results), _without_breakdown(results)
    listed: list[Block] = []
    if times:
        listed += [Sentence(LOSS_NOTE, "note"), _key({"efficiency": _("efficiency"), **LOSSES})]
    elif silent:
        listed.append(silent)
    weak = [table for table in tables if table.series.kind is ScalingKind.WEAK]
    strong = [table for table in tables if table.series.kind is ScalingKind.STRONG]
    listed += map(_scaling_table, weak)
    if strong and (plot := plot_scaling.speedup_plot([(str(table.name), table.series) for table in strong])):
        note = _("Speed-up with its interval; dashed: linear in the device count.")
        listed.append(blocks.Charts([blocks.Chart(plot, note)], plot.legend, SERIES, plot_scaling.STRONG))
    listed += map(_scaling_table, strong)
    return Section(_("Scaling"), [*drawn, *(listed if tables else ())], frozenset({"markdown", "html"}))


def _key(names: dict[str, Message]) -> Section:
    """The colours of the parts of a bar, which only HTML draws."""
    return only("html", Items(list(names.values()), "key", list(names)))


def named_scaling(results: Sequence[Result]) -> list[NamedScaling]:
    every = scaling(results)
    names = label.distinguishing(series.key for series in every)
    return [NamedScaling(_name(series, names), series) for series in every]


def _name(series: ScalingSeries, names: Sequence[str]) -> Message:
    key = series.key
    batch: str = label.batch(key)
    if series.kind is ScalingKind.STRONG:
        batch = _("global batch {batch}", batch=series.global_batch)
    parts = (label.framework(key), label.precision(key), batch, label.extras(key, names))
    return joined(list(filter(None, parts)), " ")


def _scaling_table(table: NamedScaling) -> Section:
    series = table.series
    baseline = series.baseline.key.topology
    if series.kind is ScalingKind.STRONG:
        note = _("Global batch is constant. Baseline: {baseline}.", baseline=baseline)
    else:
        note = _("Per-device batch is constant. Baseline: {baseline}.", baseline=baseline)
    has_losses = any(point.loss for point in series.points)
    header = [
        *(_("topology"), label.rate_unit(series.baseline.unit), _("speedup"), _("efficiency")),
        *([_("where the loss goes"), *LOSSES.values()] if has_losses else ()),
    ]
    rows = [_point(point, point is series.points[0], has_losses) for point in series.points]
    right = frozenset(range(1, len(header))) - {4}
    title = _("{kind}: {name}", kind=KINDS[series.kind], name=table.name)
    shown = Table(header, rows, right, sortable=False, looks={4: "wide"})
    return Section(title, [Sentence(note, "sub"), shown], look="compared")


def _point(point: ScalingPoint, is_baseline: bool, has_losses: bool) -> list[Text]:
    ratios: list[Text] = [ratio_cell(point.speedup), share_cell(point.efficiency)]
    losses: list[Text] = []
    if has_losses:
        values = asdict(point.loss) if point.loss else {}
        bar = _loss_bar(point) if point.loss and not is_baseline else None
        losses = [bar, *("" if is_baseline else number.percent(values.get(name)) for name in LOSSES)]
    return [
        point.result.key.topology,
        Span(number.throughput(point.result.throughput), "main"),
        *(("×1", "100 %") if is_baseline else ratios),
        *losses,
    ]


def _loss_bar(point: ScalingPoint) -> Bar:
    """Efficiency and losses as widths; gains have none, so the rest is scaled to fit."""
    shares = {"efficiency": point.efficiency.value, **(asdict(point.loss) if point.loss else {})}
    widths = [(name, max(0.0, shares[name])) for name in ("efficiency", *LOSSES)]
    whole = sum(width for _name, width in widths)
    return Bar([(name, width / whole) for name, width in widths])


@dataclass(frozen=True)
class TimeRow:
    """A case, or one node of it, its own seconds in a step, and who holds the others back there."""

    name: Text
    ranks: int
    shares: TimeShares
    own_seconds: float
    stragglers: tuple[Straggler, ...] = ()


@dataclass(frozen=True)
class CaseTimes:
    """The rows of one case: the case itself, and its nodes where it has more than one."""

    rows: tuple[TimeRow, ...]
    nodes_left_out: int


def time_section(results: Sequence[Result]) -> Section | None:
    cases = case_times(results)
    if not cases:
        return None
    slowed = any(row.stragglers for case in cases for row in case.rows)
    header = [
        *(_("case"), _("ranks"), "", *SHARES.values(), _("own time")),
        *([_("holds the others back")] if slowed else ()),
    ]
    rows: list[list[Text]] = []
    for case in cases:
        rows += [_time_row(row, slowed) for row in case.rows]
        if case.nodes_left_out:
            left_out = _("{count} faster nodes are not shown.", count=case.nodes_left_out)
            rows.append([Span(left_out, "sub"), *[""] * (len(header) - 1)])
    table = Table(
        header,
        rows,
        frozenset({1, 3, 4, 5, 6, 7}),
        sortable=False,
        looks={2: "wide", len(header) - 1: "slow"},
    )
    silent = _without_breakdown(results)
    told: list[Block] = [Sentence(TIME_NOTE, "note"), *([silent] if silent else []), _key(SHARES), table]
    return Section(_("Where the time goes"), told, frozenset({"markdown", "html"}))


def _time_row(row: TimeRow, slowed: bool) -> list[Text]:
    return [
        row.name,
        str(row.ranks),
        Bar(list(asdict(row.shares).items()), "parts time"),
        *(number.percent(getattr(row.shares, part)) for part in SHARES),
        number.duration(row.own_seconds),
        *([_holding_back(row.stragglers)] if slowed else ()),
    ]


def case_times(results: Sequence[Result]) -> list[CaseTimes]:
    """Return the cases with several ranks that tell working from waiting."""
    names = label.distinguishing(result.key for result in results)
    return [
        _times(result, f"{label.series(result.key, names)} {result.key.topology}")
        for result in results
        if result.key.devices > 1 and result.breakdown is not None
    ]


def _times(result: Result, name: str) -> CaseTimes:
    assert result.breakdown is not None
    ranks = result.breakdown.ranks
    own = fmean(rank.own_seconds for rank in ranks)
    whole = TimeRow(name, len(ranks), result.breakdown.shares, own, result.stragglers)
    nodes: dict[str | None, list[RankTimes]] = {}
    for rank in ranks:
        nodes.setdefault(rank.node, []).append(rank)
    slow = {straggler.node: straggler for straggler in reversed(result.stragglers)}
    rows = [_node(str(node), own, slow.get(node)) for node, own in nodes.items()] if len(nodes) > 1 else []
    if len(rows) > MOST_NODES:
        rows = sorted(rows, key=lambda row: -row.own_seconds)[:MOST_NODES]
    return CaseTimes((whole, *rows), len(nodes) - len(rows) if rows else 0)


def _node(name: str, ranks: Sequence[RankTimes], straggler: Straggler | None) -> TimeRow:
    shares = TimeShares(*(fmean(getattr(rank.shares, part) for rank in ranks) for part in SHARES))
    own = fmean(rank.own_seconds for rank in ranks)
    return TimeRow(Span(f"– {name}", "node"), len(ranks), shares, own, (straggler,) if straggler else ())


def _without_breakdown(results: Sequence[Result]) -> Sentence | None:
    """Name the frameworks whose ranks do not tell working from waiting."""
    names = {
        label.framework(each.key): None for each in results if each.key.devices > 1 and not each.breakdown
    }
    if not names:
        return None
    return Sentence(
        _(
            "{frameworks}: the ranks do not tell working from waiting, so it cannot be said where their time"
            " goes or which of them holds the others back.",
            frameworks=", ".join(names),
        ),
        "note",
    )


def _holding_back(stragglers: Sequence[Straggler]) -> Message:
    """`rank 3 (b), −12.1 %`."""
    return joined(list(_straggler_texts(stragglers)), "; ")


def _straggler_texts(stragglers: Sequence[Straggler]) -> Iterator[Message]:
    for slow in stragglers:
        cost = number.percent(slow.cost)
        if slow.rank is None:
            yield _("node {node}, −{cost}", node=slow.node, cost=cost)
        elif slow.node:
            yield _("rank {rank} ({node}), −{cost}", rank=slow.rank, node=slow.node, cost=cost)
        else:
            yield _("rank {rank}, −{cost}", rank=slow.rank, cost=cost)
