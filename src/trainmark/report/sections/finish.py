"""Time to train as plain cells, for every layout: one row a result, by the name of a word each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from trainmark.measure.figure import FinishResult, Ratio, Result
from trainmark.metric import Metric, score
from trainmark.pages import label, number
from trainmark.report.format.table import Table
from trainmark.report.format.words import Lang, words


@dataclass(frozen=True)
class FinishRow:
    """One result that was trained by epochs, under the name of its case."""

    name: str
    result: Result
    finish: FinishResult


@dataclass(frozen=True)
class Cell:
    """What stands in a row, and in smaller print under it."""

    text: str
    under: str = ""

    @property
    def line(self) -> str:
        return f"{self.text} {self.under}".strip()


Column = Callable[[FinishRow], Cell]
# Columns that a run may have nothing to say in.
OPTIONAL = frozenset({"time2train", "reached", "airank_clock", "epochs_to_target", "of_synthetic"})
OPTIONAL_SPEEDUPS = frozenset({"speedup_time", "speedup_throughput"})


def finish_rows(results: Sequence[Result]) -> tuple[FinishRow, ...]:
    trained = [result for result in results if result.finish is not None]
    names = label.distinguishing(result.key for result in trained)
    return tuple(
        FinishRow(f"{label.series(result.key, names)} {result.key.topology}", result, result.finish)
        for result in trained
        if result.finish is not None
    )


def columns(rows: Sequence[FinishRow], lang: Lang) -> dict[str, Column]:
    """The columns in which some row has something to say, in the order of the page."""
    shown: dict[str, Column] = {
        "case": lambda row: Cell(row.name),
        "time2train": _time2train,
        "reached": _reached,
        "airank_clock": lambda row: Cell(number.clock(row.finish.airank_seconds)),
        "epochs_to_target": lambda row: Cell(_count(row.finish.epochs_to_target)),
        **{f"best_{metric.name}": partial(_best, metric, words(lang)) for metric in _metrics(rows)},
        "rate_train": lambda row: Cell(number.throughput(row.finish.train_rate)),
        "rate_whole": lambda row: Cell(number.throughput(row.finish.whole_rate)),
        "of_synthetic": lambda row: _share(row.result.of_synthetic),
        "speedup_time": lambda row: _speedup(row, row.finish.time_speedup),
        "speedup_throughput": lambda row: _speedup(row, row.result.speedup),
    }
    scales = any(row.result.key.devices > 1 for row in rows)
    return {
        name: column
        for name, column in shown.items()
        if (name not in OPTIONAL or any(column(row).text != number.MISSING for row in rows))
        and (name not in OPTIONAL_SPEEDUPS or scales)
    }


def header(name: str, rows: Sequence[FinishRow], t: dict[str, str]) -> str:
    for place, metric in enumerate(_metrics(rows)):
        if name == f"best_{metric.name}":
            return t["metric_there" if place else "best_metric"].format(metric=metric.title)
    return t[name].format(unit=label.rate_unit(rows[0].result.unit))


def table(rows: Sequence[FinishRow], lang: Lang) -> Table:
    shown = columns(rows, lang)
    return Table(
        [header(name, rows, words(lang)) for name in shown],
        [[column(row).line for column in shown.values()] for row in rows],
        frozenset(range(1, len(shown))),
    )


def targets(rows: Sequence[FinishRow]) -> str:
    """`perplexity=20`, or all of them where the cases have different ones."""
    return ", ".join(dict.fromkeys(row.finish.target for row in rows if row.finish.target))


def target_words(finish: FinishResult) -> str:
    """`accuracy=0.761` as `accuracy 76.1 %`, with the titles of the metrics."""
    metrics = {metric.name: metric for metric in finish.metrics}
    parts = []
    for part in (finish.target or "").split(", "):
        name, _, value = part.partition("=")
        try:
            parts.append(metrics[name].target_text(float(value)))
        except (KeyError, ValueError):
            parts.append(part)
    return ", ".join(parts)


def _metrics(rows: Sequence[FinishRow]) -> list[Metric]:
    """Those of all rows, each once."""
    return list(dict.fromkeys(metric for row in rows for metric in row.finish.metrics))


def _time2train(row: FinishRow) -> Cell:
    bounds = number.clock_interval(row.finish.interval)
    return Cell(number.clock(row.finish.time2train), "" if bounds == number.MISSING else bounds)


def _reached(row: FinishRow) -> Cell:
    finish = row.finish
    return Cell(f"{finish.reached}/{finish.decided}" if finish.target else number.MISSING)


def _best(metric: Metric, t: dict[str, str], row: FinishRow) -> Cell:
    """With its epoch and the worst seed under the metric that ranks trainings."""
    finish = row.finish
    value = score(finish.best, metric)
    if value is None:
        return Cell(number.MISSING)
    if metric != finish.metrics[0]:
        return Cell(metric.text(value))
    under = t["in_epoch"].format(epoch=finish.best_epoch)
    worst = score(finish.lowest if metric.better == "higher" else finish.highest, metric)
    if worst is not None and row.result.n > 1:
        under += t[f"seeds_from_{metric.better}"].format(worst=metric.text(worst))
    return Cell(metric.text(value), under)


def _speedup(row: FinishRow, ratio: Ratio | None) -> Cell:
    if row.result.key.devices == 1:
        return Cell("")  # the baseline itself
    if ratio is None:
        return Cell(number.MISSING)
    bounds = number.ratio_interval(ratio.interval)
    return Cell(f"×{number.ratio(ratio.value)}", "" if bounds == number.MISSING else bounds)


def _share(ratio: Ratio | None) -> Cell:
    if ratio is None:
        return Cell(number.MISSING)
    bounds = number.percent_interval(ratio.interval)
    return Cell(number.percent(ratio.value), "" if bounds == number.MISSING else bounds)


def _count(value: int | None) -> str:
    return number.MISSING if value is None else str(value)
