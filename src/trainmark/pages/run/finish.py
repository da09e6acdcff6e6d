"""Time to train: one row a result that was trained by epochs, and its curves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from trainmark.measure.figure import Evaluation, FinishResult, Ratio, Result
from trainmark.metric import Metric, score
from trainmark.pages import label, number
from trainmark.pages.run.results import ratio_cell, share_cell
from trainmark.store.series import Curve
from trainmark.view import blocks
from trainmark.view.blocks import Section, Sentence, Span, Table, Text, plain_text, without
from trainmark.view.chart.axis import AIR, linear
from trainmark.view.chart.model import Chart, Dots, Figure, Line, Mark, Panel, Plot, Rule
from trainmark.view.message import Message, _

NOTE = _(
    "The clock of time2train starts with the first rank, right before data is touched, ends with the"
    " evaluation that crosses the target, and never pauses. AI-Rank's starts with the process. A trial that"
    " misses the target counts as longer than any that reaches it."
)
RATES_NOTE = _(
    "Training alone leaves out the first epoch and whatever stands between the epochs; with evaluation is all"
    " samples over all the time. Speed-up by time and by throughput differ where more devices need more"
    " epochs, or where evaluation and start-up do not shrink."
)
CURVES_NOTE = _(
    "Every seed of the case. Above, what the evaluations gave (dotted: all but the first metric), the target"
    " dashed and the crossing ringed; below, the training loss, as means over stretches of steps."
)
Column = Callable[[Result, FinishResult], Text]


def finish_section(results: Sequence[Result], curves: Sequence[Curve] = ()) -> Section | None:
    table = finish_table(results)
    if table is None:
        return None
    plot = training_plot(curves)
    drawn = [blocks.Chart(plot, CURVES_NOTE, _("Case"), title=_("Evaluations and loss"))] if plot else []
    notes = without("terminal", Sentence(RATES_NOTE, "note"))
    targets = dict.fromkeys(result.finish.target for result in results if result.finish)
    named = ", ".join(filter(None, targets))
    title = _("Time to train ({targets})", targets=named) if named else _("Time to train")
    return Section(title, [without("terminal", Sentence(NOTE, "note")), table, notes, *drawn])


def finish_table(results: Sequence[Result]) -> Table | None:
    """Return a row for each result; a column in which no result has something to say is left out."""
    trained = [(result, result.finish) for result in results if result.finish is not None]
    if not trained:
        return None
    names = label.distinguishing(result.key for result, _finish in trained)
    columns = _columns(trained)
    rows: list[list[Text]] = [
        [
            f"{label.series(result.key, names)} {result.key.topology}",
            *(cell(result, finish) for _header, cell in columns),
        ]
        for result, finish in trained
    ]
    header = [_("case"), *(name for name, _cell in columns)]
    return Table(header, rows, frozenset(range(1, len(header))), sortable=False, look="finish")


def _columns(trained: Sequence[tuple[Result, FinishResult]]) -> list[tuple[Text, Column]]:
    unit = label.rate_unit(trained[0][0].unit)
    scales = any(result.key.devices > 1 for result, _finish in trained)
    metrics = dict.fromkeys(metric for _result, finish in trained for metric in finish.metrics)
    before: list[tuple[Text, Column]] = [
        (Span("time2train", "as-is"), _time2train),
        (_("reached"), lambda _result, finish: _reached(finish)),
        (_("AI-Rank's clock"), lambda _result, finish: number.clock(finish.airank_seconds)),
        (_("epochs"), lambda _result, finish: _or_missing(finish.epochs_to_target)),
    ]
    best: list[tuple[Text, Column]] = [
        (
            _("{metric} there", metric=metric.title) if place else _("best {metric}", metric=metric.title),
            partial(_best, metric),
        )
        for place, metric in enumerate(metrics)
    ]
    rates: list[tuple[Text, Column]] = [
        (_("{unit} training", unit=unit), lambda _r, finish: number.throughput(finish.train_rate)),
        (
            _("{unit} with evaluation", unit=unit),
            lambda _result, finish: number.throughput(finish.whole_rate),
        ),
    ]
    after: list[tuple[Text, Column]] = [(_("of synthetic"), lambda result, _finish: _of_synthetic(result))]
    speedups: list[tuple[Text, Column]] = [
        (_("speedup by time"), lambda result, finish: _speedup(result, finish.time_speedup)),
        (_("speedup by throughput"), lambda result, _finish: _speedup(result, result.speedup)),
    ]

    def known(columns: list[tuple[Text, Column]]) -> list[tuple[Text, Column]]:
        return [
            (name, cell)
            for name, cell in columns
            if any(plain_text(cell(*each)) != number.MISSING for each in trained)
        ]

    return [*known(before), *best, *rates, *known(after), *(speedups if scales else ())]


def _time2train(_result: Result, finish: FinishResult) -> Text:
    bounds = Span(number.clock_interval(finish.interval), "under") if finish.interval else None
    return [Span(number.clock(finish.time2train), "main"), bounds]


def _reached(finish: FinishResult) -> str:
    return f"{finish.reached}/{finish.decided}" if finish.target else number.MISSING


def _best(metric: Metric, result: Result, finish: FinishResult) -> Text:
    """With its epoch and the worst seed under the metric that ranks trainings."""
    value = score(finish.best, metric)
    if value is None:
        return number.MISSING
    if metric != finish.metrics[0]:
        return metric.text(value)
    worst = score(finish.lowest if metric.better == "higher" else finish.highest, metric)
    told: Message = _("epoch {epoch}", epoch=finish.best_epoch)
    if worst is not None and result.n > 1:
        if metric.better == "higher":
            told = _("{epoch}, lowest {worst}", epoch=told, worst=metric.text(worst))
        else:
            told = _("{epoch}, highest {worst}", epoch=told, worst=metric.text(worst))
    return [metric.text(value), Span(told, "under")]


def _of_synthetic(result: Result) -> Text:
    return share_cell(result.of_synthetic) if result.of_synthetic else number.MISSING


def _speedup(result: Result, ratio: Ratio | None) -> Text:
    if result.key.devices == 1:
        return ""  # the baseline itself
    return ratio_cell(ratio) if ratio else number.MISSING


def _or_missing(value: int | None) -> str:
    return number.MISSING if value is None else str(value)


SCORES, LOSS = 260, 160
UNITS = (
    (5400.0, 3600.0, _("hours since the run started")),
    (300.0, 60.0, _("minutes since the run started")),
    (0.0, 1.0, _("seconds since the run started")),
)
STEP, LOSS_NAME = _("step"), _("loss")
# Stretches into which all losses are thinned together, and those of one training at most and at least.
BUCKETS = 4_000
MOST, LEAST = 300, 40

# Of an evaluation its place on the axis: a step, or seconds.
Place = Callable[[Evaluation], float]


def training_plot(curves: Sequence[Curve]) -> Plot | None:
    """One figure a case, chosen on the page; its views are the two axes."""
    cases: dict[str, list[Curve]] = {}
    for curve in curves:
        cases.setdefault(curve.case, []).append(curve)
    buckets = min(MOST, max(LEAST, BUCKETS // max(1, len(curves))))
    figures = [_figure(case, members, buckets) for case, members in cases.items()]
    return Plot("training", figures) if figures else None


def _figure(case: str, curves: Sequence[Curve], buckets: int) -> Figure:
    longest = max((e.end for curve in curves for e in curve.evaluations), default=0.0)
    longest = max([longest, *(curve.seconds[-1] for curve in curves if curve.seconds)])
    scale, title = next((scale, title) for least, scale, title in UNITS if longest >= least)
    by_time = [[second / scale for second in curve.seconds] for curve in curves]
    by_steps = [[float(step) for step in curve.steps] for curve in curves]
    return Figure(
        case,
        {
            _("Time"): _chart(curves, by_time, lambda e: e.end / scale, title, buckets),
            _("Steps"): _chart(curves, by_steps, lambda e: float(e.step), STEP, buckets),
        },
    )


def _chart(
    curves: Sequence[Curve],
    places: Sequence[Sequence[float]],
    place: Place,
    title: str,
    buckets: int,
) -> Chart:
    """`places` are those of the losses on the horizontal axis."""
    metric = next((curve.metrics[0] for curve in curves if curve.metrics), None)
    targets = sorted({curve.target for curve in curves if curve.target is not None}) if metric else []
    rules = [
        Rule("muted", y=_scale(metric) * target, name=_target_name(metric, target))
        for target in targets
        if metric
    ]
    losses = [
        Line(
            "t1",
            opacity=0.8,
            x=x,
            y=curve.losses,
            name=_seed(curve),
            width=1.25,
            tip=_("loss {y}", y="{y}"),
            buckets=buckets,
        )
        for curve, x in zip(curves, places, strict=True)
    ]
    floor = next((curve.floor for curve in curves if curve.floor is not None), None)
    if floor is not None:
        rules.append(Rule("muted", y=floor, name=_("lowest possible {floor}", floor=f"{floor:.4f}")))
    scores = [mark for curve in curves for mark in _scores(curve, place)]
    crossings = [mark for curve in curves for mark in _crossing(curve, place)]
    values = [value for mark in scores for value in mark.y] + [rule.y for rule in rules]
    ends = [value for mark in (*losses, *scores) for value in mark.x]
    # Rings above all lines, whoever's.
    marks: list[Mark] = [*rules, *scores, *crossings]
    axis = linear(values, _axis_title(metric), bounds=None if floor is None else _above(floor, values))
    panels = [Panel(axis, marks, SCORES)] if scores else []
    losses_axis = linear((value for line in losses for value in line.y), LOSS_NAME)
    return Chart(linear(ends, title, most=11), [*panels, Panel(losses_axis, losses, LOSS)])


def _above(floor: float, values: Sequence[float | None]) -> tuple[float, float]:
    """Return the ends of an axis for values above a floor that is far from zero: the distance counts."""
    highest = max([floor, *(value for value in values if value is not None)])
    air = AIR * (highest - floor) or AIR
    return floor - 2 * air, highest + air


def _seed(curve: Curve) -> str:
    return _("seed {seed}", seed=curve.repeat if curve.seed is None else curve.seed)


def _scores(curve: Curve, place: Place) -> list[Line | Dots]:
    """The first metric above the others; one of another kind than the first has no place on its axis."""
    marks: list[Line | Dots] = []
    for metric in reversed(_drawn(curve)):
        reported, first = _reported(curve, metric), metric == curve.metrics[0]
        x = [place(evaluation) for evaluation, _value in reported]
        y = [_scale(metric) * value for _evaluation, value in reported]
        texts = [f"{metric.title} {metric.text(value)}" for _evaluation, value in reported]
        opacity = 0.85 if first else 0.5
        marks.append(Line("t0", "", True, opacity, x=x, y=y, width=2 if first else 1.25, dash=not first))
        radius = 2.5 if first else 1.5
        marks.append(Dots("t0", "", True, opacity, x=x, y=y, texts=texts, name=_seed(curve), radius=radius))
    return marks


def _crossing(curve: Curve, place: Place) -> list[Dots]:
    drawn = _drawn(curve)
    if curve.crossing is None or not drawn:
        return []
    value = score(curve.crossing.scores, drawn[0])
    if value is None:
        return []
    crossed = _(
        "reached after {time}, epoch {epoch}",
        time=number.clock(curve.crossing.end),
        epoch=curve.crossing.epoch + 1,
    )
    x, y = [place(curve.crossing)], [_scale(drawn[0]) * value]
    return [Dots("ink", x=x, y=y, texts=[crossed], name=_seed(curve), shape="ring", radius=7)]


def _drawn(curve: Curve) -> list[Metric]:
    """Return the metrics that share an axis: all shares of one, or the first alone."""
    shares = [metric for metric in curve.metrics if metric.share]
    alike = shares if curve.metrics[:1] == tuple(shares[:1]) else curve.metrics[:1]
    return [metric for metric in alike if _reported(curve, metric)]


def _scale(metric: Metric) -> float:
    return 100.0 if metric.share else 1.0


def _axis_title(metric: Metric | None) -> str:
    if metric is None:
        return ""
    return f"{metric.title} (%)" if metric.share else metric.title


def _reported(curve: Curve, metric: Metric) -> list[tuple[Evaluation, float]]:
    """The evaluations that report this metric, with their values."""
    values = ((evaluation, score(evaluation.scores, metric)) for evaluation in curve.evaluations)
    return [(evaluation, value) for evaluation, value in values if value is not None]


def _target_name(metric: Metric, target: float) -> str:
    return _("target {target}", target=f"{100 * target:g} %" if metric.share else f"{target:g}")
