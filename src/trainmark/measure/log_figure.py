"""Our figure of a run that someone else logged: samples ÷ time over its steady window."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from trainmark.events import Scope
from trainmark.measure import log_doubts
from trainmark.measure.doubts import Doubt, DoubtCode, doubt
from trainmark.measure.figure import Interval, Window
from trainmark.measure.figure_doubts import loss_doubts
from trainmark.measure.log_steps import (
    Basis,
    LogFacts,
    LogReports,
    join_reports,
    step_times,
    without_last_outlier,
)
from trainmark.measure.statistics import Floats, rate_interval
from trainmark.measure.steady_window import steady_window

__all__ = ["Basis", "LogFacts", "LoggedFigure", "logged_figure"]


@dataclass(frozen=True)
class LoggedFigure:
    """`throughput` counts all devices, in `unit` a second; None where the log does not carry it.

    `steps_per_second` is known wherever the log tells how long its steps took.
    """

    throughput: float | None
    interval: Interval | None
    unit: str
    basis: Basis | None
    world_size: int | None
    batch_per_device: float | None
    steps: int
    window: Window | None
    final_loss: float | None
    doubts: tuple[Doubt, ...] = ()
    steps_per_second: float | None = None


def logged_figure(columns: Mapping[str, Floats], facts: LogFacts) -> LoggedFigure:
    """The figure of one run from its columns (`step`, `wall`, `rate`, …), one value a progress line."""
    if not columns or not len(next(iter(columns.values()))):
        return _without_progress(facts)
    joined = join_reports(columns, facts.steps_a_line, rates_add_up=facts.scope is Scope.RANK)
    facts = _with_ranks_seen(facts, columns, joined)
    times = step_times(joined, facts)
    losses = joined["loss"][~np.isnan(joined["loss"])]
    doubts = [*loss_doubts(losses, int(joined.steps.sum()))] if len(losses) else []
    throughput, interval, window, steps_per_second = None, None, None, None
    if times is not None and len(times.seconds):
        pace = times.seconds / times.counts
        window = without_last_outlier(pace, steady_window(pace))
        inside = slice(window.first, window.stop)
        seconds, counts = times.seconds[inside], times.counts[inside]
        doubts += log_doubts.window_doubts(window)
        if seconds.sum() > 0:
            steps_per_second = float(counts.sum() / seconds.sum()) if times.in_steps else None
            if times.factor is not None:
                factor = times.factor
                throughput = float(counts.sum() / seconds.sum()) * factor
                interval = rate_interval(seconds, counts)
                interval = interval and interval.mapped(lambda rate: rate * factor)
                doubts += log_doubts.figure_doubts(throughput, times, window, facts)
    several = list(log_doubts.several_speak(columns, joined, facts))
    if several and facts.scope is not Scope.RANK:
        throughput, interval, steps_per_second = None, None, None
        doubts += several
    elif throughput is None and (times is None or not len(times.seconds)) and _concluded(facts):
        throughput = _concluded(facts)
        doubts.append(log_doubts.own_figure(facts))
    elif throughput is None:
        doubts.append(log_doubts.missing_facts(times, window, facts))
    else:
        doubts += log_doubts.mean_of_rates(throughput, joined["rate"], facts)
    doubts += log_doubts.log_doubts(joined, times, facts)
    return LoggedFigure(
        throughput,
        interval,
        "samples" if facts.unit == "steps" else facts.unit,
        times.basis if times else None,
        facts.world_size,
        _batch(facts),
        int(joined.steps.sum()),
        window,
        float(losses[-1]) if len(losses) and np.isfinite(losses[-1]) else None,
        tuple(doubts),
        steps_per_second,
    )


def _without_progress(facts: LogFacts) -> LoggedFigure:
    own = _concluded(facts)
    doubts = (doubt(DoubtCode.UNKNOWN_SHAPE) if own is None else log_doubts.own_figure(facts),)
    return LoggedFigure(own, None, facts.unit, None, facts.world_size, _batch(facts), 0, None, None, doubts)


def _concluded(facts: LogFacts) -> float | None:
    """What the program itself concludes, of all devices."""
    if facts.own_rate is None or facts.scope is Scope.GLOBAL:
        return facts.own_rate
    return facts.own_rate * facts.world_size if facts.world_size else None


def _with_ranks_seen(facts: LogFacts, columns: Mapping[str, Floats], log_reports: LogReports) -> LogFacts:
    """Where every rank prints, those that printed are the world, if the log does not say otherwise."""
    tags = columns.get("rank")
    tagged = len(np.unique(tags[~np.isnan(tags)])) if tags is not None else 0
    ranks = max(tagged, log_reports.ranks)
    if facts.world_size is not None or not facts.every_rank or ranks < 2:
        return facts
    return replace(facts, world_size=ranks)


def _batch(facts: LogFacts) -> float | None:
    if facts.batch_per_device is None and facts.global_batch is not None and facts.world_size:
        return facts.global_batch / facts.world_size
    return facts.batch_per_device
