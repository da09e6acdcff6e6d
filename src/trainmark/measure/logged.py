"""Our figure of a run that someone else logged: samples ÷ time over its steady window."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

import numpy as np

from trainmark.events import Scope
from trainmark.measure.bootstrap import rate_interval
from trainmark.measure.doubt import Doubt, DoubtCode
from trainmark.measure.figure import Interval, Verdict, Window
from trainmark.measure.logged_reports import Reports, reports
from trainmark.measure.steady import SHORTEST_WINDOW, steady_window
from trainmark.measure.trace import Floats
from trainmark.measure.trial_doubts import loss_doubts

# Printed times coarser than this blur single steps.
FINEST_TICK = 0.01
# What a program concludes by averaging its rates is told apart from ours from here on.
MEAN_OF_RATES_EXCESS = 0.005
SAME_MEAN = 0.001
# Rounded running means can cross when differenced; wider strides let the rounding vanish.
WIDEST_STRIDE = 1024


class Basis(str, Enum):
    """What the figure was taken from."""

    TIMESTAMPS = "timestamps"
    RATES = "rates"
    RUNNING_MEANS = "running-means"
    STEP_TIMES = "step-times"


@dataclass(frozen=True)
class LogFacts:
    """What the log and its format say: `cumulative` where a printed rate or time averages from the start."""

    unit: str
    scope: Scope
    cumulative: bool = False
    every_rank: bool = False
    world_size: int | None = None
    batch_per_device: float | None = None
    global_batch: float | None = None
    steps_a_line: int = 1
    own_rate: float | None = None


@dataclass(frozen=True)
class LoggedFigure:
    """`throughput` counts all devices, in `unit` a second; None where the log does not carry it."""

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


@dataclass(frozen=True)
class _Times:
    """`counts` steps took `seconds`, up to the same constant; times `factor` it is samples a second."""

    basis: Basis
    seconds: Floats
    counts: Floats
    factor: float | None


def logged_figure(columns: Mapping[str, Floats], facts: LogFacts) -> LoggedFigure:
    """The figure of one run from its columns (`step`, `wall`, `rate`, …), one value a progress line."""
    if not columns or not len(next(iter(columns.values()))):
        empty = Doubt(DoubtCode.WINDOW_TOO_SHORT, "The log has no progress lines: check that it is whole.")
        return LoggedFigure(
            None, None, facts.unit, None, facts.world_size, _batch(facts), 0, None, None, (empty,)
        )
    found = reports(columns, facts.steps_a_line, rates_add_up=facts.scope is Scope.RANK)
    facts = _with_ranks_seen(facts, columns, found)
    times = _times(found, facts)
    losses = found["loss"][~np.isnan(found["loss"])]
    doubts = [*loss_doubts(losses, int(found.steps.sum()))] if len(losses) else []
    throughput, interval, window = None, None, None
    if times is not None and len(times.seconds):
        window = steady_window(times.seconds / times.counts)
        inside = slice(window.first, window.stop)
        seconds, counts = times.seconds[inside], times.counts[inside]
        doubts += _window_doubts(window)
        if times.factor is not None and seconds.sum() > 0:
            throughput = float(counts.sum() / seconds.sum()) * times.factor
            interval = _scaled(rate_interval(seconds, counts), times.factor)
    if _several_speak(columns, found, facts):
        throughput, interval = None, None
        doubts.append(
            Doubt(
                DoubtCode.SCOPE_AMBIGUOUS,
                f"About {found.ranks} processes print each step where one should, and none says whether its "
                "rate is its own or that of all: look for it in the launch command.",
            )
        )
    elif throughput is None:
        doubts.append(_ambiguous(times, facts))
    else:
        doubts += _mean_of_rates(throughput, found["rate"], facts)
    return LoggedFigure(
        throughput,
        interval,
        "samples" if facts.unit == "steps" and _global_batch(facts) else facts.unit,
        times.basis if times else None,
        facts.world_size,
        _batch(facts),
        int(found.steps.sum()),
        window,
        float(losses[-1]) if len(losses) and np.isfinite(losses[-1]) else None,
        tuple(doubts),
    )


def _several_speak(columns: Mapping[str, Floats], found: Reports, facts: LogFacts) -> bool:
    """Whether lines of one step differ in their loss, in a format that one process prints for all.

    The same line twice is no second process: some loggers print a step at two levels of detail.
    """
    losses, steps = columns.get("loss"), columns.get("step")
    if found.ranks < 2 or facts.every_rank or facts.scope is Scope.RANK or losses is None or steps is None:
        return False
    again = steps[1:] == steps[:-1]
    return bool(np.any(again & (losses[1:] != losses[:-1])))


def _with_ranks_seen(facts: LogFacts, columns: Mapping[str, Floats], found: Reports) -> LogFacts:
    """Where every rank prints, those that printed are the world, if the log does not say otherwise."""
    tags = columns.get("rank")
    tagged = len(np.unique(tags[~np.isnan(tags)])) if tags is not None else 0
    ranks = max(tagged, found.ranks)
    if facts.world_size is not None or not facts.every_rank or ranks < 2:
        return facts
    return LogFacts(**{**vars(facts), "world_size": ranks})


def _times(found: Reports, facts: LogFacts) -> _Times | None:
    """The most trustworthy of what the log has to tell the time by."""
    batch = _global_batch(facts)
    stamps = _timestamps(found, facts, batch)
    if stamps is not None and batch is not None and _tick(found["wall"]) <= FINEST_TICK:
        return stamps
    if np.isfinite(found["rate"]).any():
        return _rates(found, facts, batch)
    if np.isfinite(_step_seconds(found)).any():
        return _step_times(found, facts, batch)
    return stamps


def _timestamps(found: Reports, facts: LogFacts, batch: float | None) -> _Times | None:
    """From line to line within an epoch; between epochs there is evaluation, which is no training."""
    gaps = np.diff(found["wall"], prepend=np.nan)
    usable = np.isfinite(gaps) & (gaps >= 0) & ~found.fresh
    if not usable.any() or gaps[usable].sum() <= 0:
        return None
    samples = found["samples"][usable]
    if np.isfinite(samples).all():
        factor = 1.0 if facts.scope is Scope.GLOBAL else facts.world_size
        return _Times(Basis.TIMESTAMPS, gaps[usable], samples, factor)
    return _Times(Basis.TIMESTAMPS, gaps[usable], found.steps[usable], batch)


def _rates(found: Reports, facts: LogFacts, batch: float | None) -> _Times:
    """n steps at rate r took n ÷ r, up to the batch, which cancels where rates give a rate again."""
    if facts.unit == "steps":
        factor: float | None = batch or 1.0
    else:
        factor = 1.0 if facts.scope is Scope.GLOBAL else facts.world_size
    found = found.where(np.isfinite(found["rate"]) & (found["rate"] > 0))
    if facts.cumulative:
        return _differenced(found, found.done / found["rate"], factor)
    return _Times(Basis.RATES, found.steps / found["rate"], found.steps, factor)


def _step_times(found: Reports, facts: LogFacts, batch: float | None) -> _Times:
    seconds = _step_seconds(found)
    found = found.where(np.isfinite(seconds) & (seconds > 0))
    if facts.cumulative:
        return _differenced(found, found.done * _step_seconds(found), batch)
    return _Times(Basis.STEP_TIMES, found.steps * _step_seconds(found), found.steps, batch)


def _differenced(found: Reports, since_start: Floats, factor: float | None) -> _Times:
    """Running means taken apart: what passed since the report before, or since the epoch began."""
    stride = 1
    while True:
        kept = found.fresh | (np.arange(len(since_start)) % stride == stride - 1)
        fresh, done, passed = found.fresh[kept], found.done[kept], since_start[kept]
        seconds = np.where(fresh, passed, np.diff(passed, prepend=0.0))
        counts = np.where(fresh, done, np.diff(done, prepend=0.0))
        sound = (seconds > 0) & (counts > 0)
        if sound.all() or stride >= min(WIDEST_STRIDE, len(since_start)):
            return _Times(Basis.RUNNING_MEANS, seconds[sound], counts[sound], factor)
        stride *= 2


def _step_seconds(found: Reports) -> Floats:
    seconds = found["seconds"]
    return np.where(np.isnan(seconds), found["ms"] / 1000, seconds)


def _tick(wall: Floats) -> float:
    """The resolution of printed times: the largest of 1, 0.1 and 0.01 s that they all are multiples of."""
    finite = wall[np.isfinite(wall)]
    for tick in (1.0, 0.1):
        # Times since 1970 are doubles with a few ten-millionths of a second of rounding.
        if np.all(np.abs(finite / tick - np.round(finite / tick)) < 1e-4):
            return tick
    return FINEST_TICK


def _global_batch(facts: LogFacts) -> float | None:
    if facts.global_batch is not None:
        return facts.global_batch
    known = facts.batch_per_device is not None and facts.world_size is not None
    return facts.batch_per_device * facts.world_size if known else None  # type: ignore[operator]


def _batch(facts: LogFacts) -> float | None:
    if facts.batch_per_device is None and facts.global_batch is not None and facts.world_size:
        return facts.global_batch / facts.world_size
    return facts.batch_per_device


def _scaled(interval: Interval | None, factor: float) -> Interval | None:
    if interval is None:
        return None
    return Interval(interval.low * factor, interval.high * factor, interval.confidence)


def _window_doubts(window: Window) -> Iterator[Doubt]:
    if window.verdict is Verdict.NEVER_SETTLED:
        yield Doubt(
            DoubtCode.NEVER_SETTLED,
            f"The speed never settled within {window.stop} reports: "
            "take a longer log, or look for what moves it.",
        )
    elif window.verdict is Verdict.TOO_SHORT:
        yield Doubt(
            DoubtCode.WINDOW_TOO_SHORT,
            f"Only {window.steps} steady reports of {window.stop} are left, and {SHORTEST_WINDOW} are needed "
            "to tell warm-up from work: take a longer log.",
        )
    elif 2 * window.first > window.stop:
        yield Doubt(
            DoubtCode.WARMUP_PAST_WINDOW,
            f"Warm-up took {window.first} of {window.stop} reports, more than any fixed rule would drop: "
            "take a longer log.",
        )


def _ambiguous(times: _Times | None, facts: LogFacts) -> Doubt:
    if times is None or not len(times.seconds):
        told = "The log gives neither times nor rates to tell the throughput from"
    elif times.basis in (Basis.TIMESTAMPS, Basis.STEP_TIMES):
        missing = "batch" if facts.batch_per_device is None else "number of devices"
        told = f"The log gives times, but not the {missing} that would make samples of them"
    else:
        alone = float(times.counts.sum() / times.seconds.sum())
        told = f"Its rates ({alone:.4g} {facts.unit}/s) are one device's, and it does not say how many ran"
    return Doubt(DoubtCode.SCOPE_AMBIGUOUS, f"{told}: look for it in the launch command.")


def _mean_of_rates(throughput: float, rates: Floats, facts: LogFacts) -> Iterator[Doubt]:
    """Whether the program's own conclusion is a mean of its rates that time does not bear out."""
    rates = rates[np.isfinite(rates)]
    if facts.own_rate is None or facts.cumulative or not len(rates):
        return
    is_mean = abs(facts.own_rate / float(rates.mean()) - 1) < SAME_MEAN if rates.mean() else False
    excess = facts.own_rate / throughput - 1
    if is_mean and abs(excess) > MEAN_OF_RATES_EXCESS:
        yield Doubt(
            DoubtCode.MEAN_OF_RATES,
            f"The program's own {facts.own_rate:,.6g} {facts.unit}/s is a mean of rates, {excess:+.1%} "
            "against samples over time: use the figure given here.",
        )
