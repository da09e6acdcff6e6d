"""Finishes over repeats: how many seeds crossed the line, and how long the middle one took."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence
from math import inf, isfinite, sqrt

from trainmark.measure.doubt import Doubt, DoubtCode, doubt
from trainmark.measure.figure import Finish, FinishResult, Interval, Ratio
from trainmark.measure.statistics.intervals import median_interval, ratio_interval
from trainmark.metric import Metric, score

# Seeds of one recipe end within some tenths of a point; and over so many samples an accuracy says no more
# than four of its standard errors.
WIDE_SPREAD = 0.01
# Of a metric that is no share, such as a perplexity.
WIDE_RELATIVE_SPREAD = 0.05
STANDARD_ERRORS = 4.0


def finish_result(finishes: Sequence[Finish], baseline: Sequence[Finish]) -> FinishResult | None:
    """`baseline` holds the finishes on one device, the same ones where this is it."""
    if not finishes:
        return None
    times = sorted(_times(finishes))
    median = statistics.median(times) if times else inf
    interval = median_interval(times)
    metric = finishes[0].metric
    best = max(finishes, key=lambda finish: _goodness(metric, finish))
    scores = _scores(metric, finishes)
    return FinishResult(
        target=finishes[0].target,
        reached=sum(finish.reached is True for finish in finishes),
        decided=sum(finish.reached is not None for finish in finishes),
        time2train=median if isfinite(median) else None,
        interval=interval if interval and isfinite(interval.high) else None,
        times=tuple(time for time in times if isfinite(time)),
        airank_seconds=_airank(finishes),
        epochs_to_target=_middle_count(finish.epochs_to_target for finish in finishes),
        best=best.best,
        best_epoch=best.best_epoch,
        lowest=((metric.name, min(scores)),) if metric and scores else (),
        highest=((metric.name, max(scores)),) if metric and scores else (),
        train_rate=_median(finish.train_rate or finish.first_epoch_rate for finish in finishes),
        whole_rate=_median(finish.whole_rate for finish in finishes),
        airank_rate=_median(finish.airank_rate for finish in finishes),
        evaluation_seconds=statistics.median(finish.evaluation_seconds for finish in finishes),
        checkpoint_seconds=statistics.median(finish.checkpoint_seconds for finish in finishes),
        resumed=sum(finish.resumed > 0 for finish in finishes),
        time_speedup=_speedup(finishes, baseline),
        metrics=finishes[0].metrics,
    )


def finish_doubts(finishes: Sequence[Finish]) -> Iterator[Doubt]:
    decided = [finish for finish in finishes if finish.reached is not None]
    metric = finishes[0].metric if finishes else None
    if missed := sum(finish.reached is False for finish in decided):
        best = max(_scores(metric, decided), key=metric.goodness, default=None) if metric else None
        values = {"missed": missed, "decided": len(decided), "target": decided[0].target}
        if metric and best is not None:
            values |= {"metric": metric.title, "best": metric.text(best)}
        yield doubt(DoubtCode.TARGET_NOT_REACHED, "best" if "best" in values else "", **values)
    scores = _scores(metric, finishes)
    if metric and len(scores) > 1 and max(scores) - min(scores) > _usual_spread(metric, scores, finishes):
        low, high = metric.text(min(scores)), metric.text(max(scores))
        yield doubt(DoubtCode.ACCURACY_SPREAD, metric=metric.title, seeds=len(scores), low=low, high=high)


def _scores(metric: Metric | None, finishes: Iterable[Finish]) -> list[float]:
    """The best value of each training."""
    values = (score(finish.best, metric) for finish in finishes)
    return [value for value in values if value is not None]


def _goodness(metric: Metric | None, finish: Finish) -> float:
    return metric.goodness(score(finish.best, metric)) if metric else 0.0


def _usual_spread(metric: Metric, scores: Sequence[float], finishes: Sequence[Finish]) -> float:
    if not metric.share:
        return WIDE_RELATIVE_SPREAD * abs(statistics.median(scores))
    samples = [each.samples for finish in finishes for each in finish.evaluations if each.samples]
    if not samples:
        return WIDE_SPREAD
    share = min(1.0, max(0.0, statistics.median(scores)))
    return max(WIDE_SPREAD, STANDARD_ERRORS * sqrt(share * (1 - share) / min(samples)))


def _times(finishes: Sequence[Finish]) -> list[float]:
    """A trial that missed the target took longer than any that did not; one cut short says nothing."""
    return [inf if f.time2train is None else f.time2train for f in finishes if f.reached is not None]


def _speedup(finishes: Sequence[Finish], baseline: Sequence[Finish]) -> Ratio | None:
    own, one = _times(finishes), _times(baseline)
    if not own or not one or not all(map(isfinite, (statistics.median(own), statistics.median(one)))):
        return None
    if finishes is baseline:
        return Ratio(1.0, Interval(1.0, 1.0, 1.0))
    bounds = ratio_interval(one, own) if all(map(isfinite, (*one, *own))) else None
    return Ratio(statistics.median(one) / statistics.median(own), bounds)


def _airank(finishes: Sequence[Finish]) -> float | None:
    times = [inf if f.airank_seconds is None else f.airank_seconds for f in finishes if f.reached is not None]
    median = statistics.median(times) if times else inf
    return median if isfinite(median) else None


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def _middle_count(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return statistics.median_low(known) if known else None
