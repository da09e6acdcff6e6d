"""The finish line: when a trial crossed it, by which clock, where the time went; and over repeats."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf, isfinite, sqrt
from typing import Any

import numpy as np

from trainmark.events.ranges import count_in, number_in
from trainmark.measure.doubts import Doubt, DoubtCode, doubt
from trainmark.measure.figure import ONE, Epoch, Evaluation, Finish, FinishResult, Ratio
from trainmark.measure.rank_events import RESUME_MARK
from trainmark.measure.statistics import median_count, median_interval, median_known, ratio_interval
from trainmark.measure.trace import TimedMark, Trace
from trainmark.metric import Metric, score, scores_in


def finish_of(trace: Trace) -> Finish | None:
    """None for a trial that was not trained by epochs; what a stream cut short does not tell is None."""
    target = trace.facts.get("target")
    if target is None and "epochs" not in trace.facts:
        return None
    metrics = trace.metrics
    wanted = _target(target, metrics)
    start = trace.start if trace.first_start is None else trace.first_start
    evaluations, epochs = _evaluations(trace.marks, start, metrics), _epochs(trace, start)
    crossing = next((each for each in evaluations if wanted and _crosses(each, wanted)), None)
    ended = len(trace.end_facts) == trace.world_size
    startup = None if trace.process_start is None else start - trace.process_start
    best = _best(evaluations, metrics)
    last = max([float(trace.ends[-1]), *(mark.at for mark in trace.marks)]) - start
    resumes = [mark for mark in trace.marks if mark.kind == RESUME_MARK and mark.rank == 0]
    checkpoints = [mark for mark in trace.marks if mark.kind == "checkpoint" and mark.rank == 0]
    return Finish(
        target=", ".join(f"{metric.name}={value:g}" for metric, value in wanted.items()) or None,
        reached=True if crossing else (False if ended and wanted else None),
        time2train=crossing.end if crossing else None,
        airank_seconds=crossing.end + startup if crossing and startup is not None else None,
        epochs_to_target=crossing.epoch + 1 if crossing else None,
        best=best.scores if best else (),
        best_epoch=best.epoch + 1 if best else None,
        train_rate=_rate(epochs[1:]),
        first_epoch_rate=_rate(epochs[:1]),
        whole_rate=float(trace.samples.sum()) / last if last > 0 else None,
        airank_rate=_airank_rate(epochs, last),
        seconds=last,
        startup_seconds=startup,
        evaluation_seconds=sum(each.end - each.begin for each in evaluations),
        checkpoint_seconds=sum(number_in(mark.facts, "seconds") or 0.0 for mark in checkpoints),
        checkpoints=sum(mark.facts.get("failed") is None for mark in checkpoints),
        resumed=len(resumes),
        lost_seconds=sum(_lost(trace, mark, start) for mark in resumes),
        training_samples=count_in(trace.facts, "training_samples"),
        validation_samples=count_in(trace.facts, "validation_samples"),
        metrics=metrics,
        epochs=epochs,
        evaluations=evaluations,
    )


def _evaluations(
    marks: Iterable[TimedMark], start: float, metrics: Sequence[Metric]
) -> tuple[Evaluation, ...]:
    """From the first rank that begins one to the last that ends it; of repeated ones the last counts."""
    begun, ended = _framed(marks, "eval", repeated=True)
    evaluations = []
    for epoch, ends in sorted(ended.items()):
        last = max(ends, key=lambda mark: mark.at)
        evaluation = Evaluation(
            epoch=epoch,
            step=last.step,
            begin=min((mark.at for mark in begun.get(epoch, ())), default=last.at) - start,
            end=last.at - start,
            scores=scores_in(last.facts, metrics),
            samples=count_in(last.facts, "samples"),
        )
        evaluations.append(evaluation)
    return tuple(evaluations)


def _best(evaluations: Sequence[Evaluation], metrics: Sequence[Metric]) -> Evaluation | None:
    """The evaluation that is best in the first metric."""
    if not evaluations or not metrics:
        return None
    return max(evaluations, key=lambda each: metrics[0].goodness(score(each.scores, metrics[0])))


def _epochs(trace: Trace, start: float) -> tuple[Epoch, ...]:
    """From the last rank's begin to the last rank's end; one that a kill cut began where it began first."""
    begun, ended = _framed(trace.marks, "epoch", repeated=False)
    return tuple(
        _epoch(trace, start, epoch, begun[epoch], ended[epoch])
        for epoch in sorted(begun.keys() & ended.keys())
    )


def _framed(
    marks: Iterable[TimedMark], kind: str, repeated: bool
) -> tuple[dict[int, list[TimedMark]], dict[int, list[TimedMark]]]:
    """Of each epoch the begins and the ends, one a rank: its last end, and its first or last begin."""
    by_state: dict[str, dict[tuple[int, int], TimedMark]] = {"begin": {}, "end": {}}
    for mark in marks:
        epoch, state = count_in(mark.facts, "epoch"), mark.facts.get("state")
        if mark.kind == kind and epoch is not None and isinstance(state, str) and state in by_state:
            place = (epoch, mark.rank)
            if state == "end" or repeated or place not in by_state[state]:
                by_state[state][place] = mark
    begun: dict[int, list[TimedMark]] = {}
    ended: dict[int, list[TimedMark]] = {}
    for state, by_epoch in (("begin", begun), ("end", ended)):
        for (epoch, _), mark in by_state[state].items():
            by_epoch.setdefault(epoch, []).append(mark)
    return begun, ended


def _epoch(
    trace: Trace, start: float, epoch: int, begun: Sequence[TimedMark], ended: Sequence[TimedMark]
) -> Epoch:
    begin, end = max(mark.at for mark in begun), max(mark.at for mark in ended)
    bounds = [begun[0].step, ended[0].step]
    first, stop = bounds if trace.numbers is None else np.searchsorted(trace.numbers, bounds)
    stood_still = [mark.at for mark in trace.marks if mark.ends_a_pause and mark.step == ended[0].step]
    # A device's clock may be some microseconds ahead of the host's, which took the mark after the last step.
    last_step = [min(float(at), end) for at in trace.ends[max(first, stop - 1) : stop]]
    trained = [at for at in (begin, *stood_still, *last_step) if at <= end]
    return Epoch(
        epoch=epoch,
        steps=int(stop - first),
        begin=begin - start,
        end=end - start,
        seconds=float(trace.step_seconds[first:stop].sum()) + end - max(trained, default=end),
        samples=float(trace.samples[first:stop].sum()),
    )


def _crosses(evaluation: Evaluation, target: Mapping[Metric, float]) -> bool:
    values = {metric: score(evaluation.scores, metric) for metric in target}
    return all(
        value is not None and metric.reached(value, target[metric]) for metric, value in values.items()
    )


def _rate(epochs: Sequence[Epoch]) -> float | None:
    seconds = sum(epoch.seconds for epoch in epochs)
    return sum(epoch.samples for epoch in epochs) / seconds if seconds > 0 else None


def _airank_rate(epochs: Sequence[Epoch], last: float) -> float | None:
    """avg_ips of AI-Rank: the epochs after the warm-up, here the first, over the time up to the end."""
    if len(epochs) < 2 or last <= epochs[0].end:
        return None
    return sum(epoch.samples for epoch in epochs[1:]) / (last - epochs[0].end)


def _lost(trace: Trace, resume: TimedMark, start: float) -> float:
    numbers = np.arange(len(trace.ends)) if trace.numbers is None else trace.numbers
    done = int(np.searchsorted(numbers, resume.step))
    before = [mark.at for mark in trace.marks if mark.step <= resume.step and mark.at < resume.at]
    return resume.at - max([float(trace.ends[done - 1]) if done else start, *before])


def _target(target: Any, metrics: Sequence[Metric]) -> dict[Metric, float]:
    """The value to reach in each metric, where the fact is what the workloads write and not a user's own."""
    if not isinstance(target, Mapping):
        return {}
    values = {metric: metric.value_in(target) for metric in metrics}
    return {metric: value for metric, value in values.items() if value is not None}


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
    times = _times(finishes)
    interval = median_interval(times)
    metric = finishes[0].metric
    best = max(finishes, key=lambda finish: _goodness(metric, finish))
    scores = _scores(metric, finishes)
    return FinishResult(
        target=finishes[0].target,
        reached=sum(finish.reached is True for finish in finishes),
        decided=sum(finish.reached is not None for finish in finishes),
        time2train=_finite_median(times),
        interval=interval if interval and isfinite(interval.high) else None,
        times=tuple(time for time in times if isfinite(time)),
        airank_seconds=_finite_median(_times(finishes, "airank_seconds")),
        epochs_to_target=median_count(finish.epochs_to_target for finish in finishes),
        best=best.best,
        best_epoch=best.best_epoch,
        lowest=((metric.name, min(scores)),) if metric and scores else (),
        highest=((metric.name, max(scores)),) if metric and scores else (),
        train_rate=median_known(finish.train_rate or finish.first_epoch_rate for finish in finishes),
        whole_rate=median_known(finish.whole_rate for finish in finishes),
        airank_rate=median_known(finish.airank_rate for finish in finishes),
        evaluation_seconds=statistics.median(finish.evaluation_seconds for finish in finishes),
        checkpoint_seconds=statistics.median(finish.checkpoint_seconds for finish in finishes),
        resumed=sum(finish.resumed > 0 for finish in finishes),
        time_speedup=_speedup(finishes, baseline),
        metrics=finishes[0].metrics,
    )


def repeated_finish_doubts(finishes: Sequence[Finish]) -> Iterator[Doubt]:
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


def _times(finishes: Sequence[Finish], name: str = "time2train") -> list[float]:
    """A trial that missed the target took longer than any that did not; one cut short says nothing."""
    times = (getattr(finish, name) for finish in finishes if finish.reached is not None)
    return sorted(inf if time is None else time for time in times)


def _finite_median(times: Sequence[float]) -> float | None:
    median = statistics.median(times) if times else inf
    return median if isfinite(median) else None


def _speedup(finishes: Sequence[Finish], baseline: Sequence[Finish]) -> Ratio | None:
    own, one = _times(finishes), _times(baseline)
    median, one_median = _finite_median(own), _finite_median(one)
    if median is None or one_median is None:
        return None
    if finishes is baseline:
        return ONE
    bounds = ratio_interval(one, own) if all(map(isfinite, (*one, *own))) else None
    return Ratio(one_median / median, bounds)
