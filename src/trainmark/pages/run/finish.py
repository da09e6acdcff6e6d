"""Time to train: one row a result that was trained by epochs, and its curves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from trainmark.measure.figure import FinishResult, Ratio, Result
from trainmark.metric import Metric, score
from trainmark.pages import label, number
from trainmark.pages.run.plot_training import training_plot
from trainmark.pages.run.results import ratio_cell, share_cell
from trainmark.store.series import Curve
from trainmark.view import blocks
from trainmark.view.blocks import Section, Sentence, Span, Table, Text, plain_text, without
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
