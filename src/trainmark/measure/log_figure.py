"""Our figure of a run that someone else logged, samples ÷ time over its steady window, and doubts about it.

Two runs never take the same times to the last digit: logs that do are copies of each other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from trainmark.events import Scope
from trainmark.measure.doubts import Doubt, DoubtCode, doubt
from trainmark.measure.figure import Interval, Window, WindowVerdict
from trainmark.measure.figure_doubts import loss_doubts
from trainmark.measure.log_steps import (
    Basis,
    LogFacts,
    LoggedStepTimes,
    LogReports,
    join_reports,
    step_times,
    without_last_outlier,
)
from trainmark.measure.statistics import Floats, rate_interval
from trainmark.measure.steady_window import SHORTEST_WINDOW, steady_window
from trainmark.view.message import Message, _

# What a program concludes by averaging its rates is told apart from ours from here on.
MEAN_OF_RATES_EXCESS = 0.005
SAME_MEAN = 0.001
# Σ samples ÷ Σ time lies this far from the median report only where a few reports took most of the time.
UNEVEN = 0.1
# A run as a whole is slower than its training by its evaluations, seldom by more than this.
WHOLE_RUN_SHARE = 0.5
# Single lines come late where several processes write; more than these is no order at all.
FEWEST_FALLS, MOST_FALLS_SHARE = 3, 0.05
# A jump in the step numbers by so many reports means that lines between them are missing.
MOST_LEFT_OUT = 5
# A clock may be set by an hour in spring and autumn; no evaluation or checkpoint takes half a day.
CLOCK_SET_SECONDS = 3700.0
LONGEST_PAUSE_SECONDS = 43_200.0
LONGEST_RUN_SECONDS = 1e8
# Settings stand before the first line; where that is of a late step, they may be another run's.
LATEST_FIRST_REPORT = 20


def window_doubts(window: Window) -> Iterator[Doubt]:
    if window.verdict is WindowVerdict.NEVER_SETTLED:
        yield doubt(DoubtCode.NEVER_SETTLED, "log", reports=window.stop)
    elif window.verdict is WindowVerdict.TOO_SHORT:
        values = {"steady": window.steps, "reports": window.stop, "needed": SHORTEST_WINDOW}
        yield doubt(DoubtCode.WINDOW_TOO_SHORT, "log", **values)
    elif 2 * window.first > window.stop:
        yield doubt(DoubtCode.WARMUP_PAST_WINDOW, "log", first=window.first, reports=window.stop)


def missing_facts(times: LoggedStepTimes | None, window: Window | None, facts: LogFacts) -> Doubt:
    """Say why there is no throughput: what the log lacks, and the option that completes it."""
    if times is None or window is None or not times.seconds[window.first : window.stop].sum() > 0:
        return doubt(DoubtCode.SCOPE_AMBIGUOUS)
    inside = slice(window.first, window.stop)
    rate = f"{float(times.counts[inside].sum() / times.seconds[inside].sum()):.4g}"
    if times.in_steps:
        return doubt(DoubtCode.SCOPE_AMBIGUOUS, "steps", rate=rate, missing=_missing(facts))
    return doubt(DoubtCode.SCOPE_AMBIGUOUS, "device", rate=rate, unit=facts.unit)


def _missing(facts: LogFacts) -> Message:
    if facts.unit == "tokens":
        return _("the tokens of a step: give --samples-per-step")
    if facts.accumulation_untold:
        return _("the samples of a step with all that it accumulates: give --samples-per-step")
    if facts.batch_per_device is not None:
        return _("the number of devices: give --devices")
    if facts.world_size is not None:
        return _("the batch of a device: give --batch")
    return _("the samples of a step: give --batch and --devices, or --samples-per-step")


def own_figure(facts: LogFacts) -> Doubt:
    return doubt(DoubtCode.OWN_FIGURE, rate=f"{facts.own_rate:,.6g}", unit=facts.unit)


def several_speak(columns: Mapping[str, Floats], reports: LogReports, facts: LogFacts) -> Iterator[Doubt]:
    """Whether lines of one step differ in their loss, in a format that one process prints for all.

    The same line twice is no second process: some loggers print a step at two levels of detail.
    """
    losses, steps = columns.get("loss"), columns.get("step")
    if reports.ranks < 2 or facts.every_rank or losses is None or steps is None:
        return
    again = (steps[1:] == steps[:-1]) & ~np.isnan(losses[1:]) & ~np.isnan(losses[:-1])
    if np.any(again & (losses[1:] != losses[:-1])):
        yield doubt(DoubtCode.SCOPE_AMBIGUOUS, "several", ranks=reports.ranks)


def log_doubts(reports: LogReports, times: LoggedStepTimes | None, facts: LogFacts) -> Iterator[Doubt]:
    """What speaks against the log itself: how it ended, its order, and settings that contradict."""
    if facts.ended is not None:
        yield doubt(DoubtCode.RUN_CUT_SHORT, ended=facts.ended)
    if facts.disordered is not None or _disordered(reports):
        yield doubt(DoubtCode.OUT_OF_ORDER)
    elif (missing := _left_out(reports, times)) is not None:
        yield doubt(DoubtCode.LINES_MISSING, missing=missing)
    if facts.conflicting:
        yield doubt(DoubtCode.SETTINGS_CONFLICT, settings=", ".join(facts.conflicting))


def _disordered(reports: LogReports) -> bool:
    stamps = reports["wall"][np.isfinite(reports["wall"])]
    falls = max(reports.falls, int((np.diff(stamps) < 0).sum()))
    return falls >= FEWEST_FALLS and falls > MOST_FALLS_SHARE * len(reports.steps)


def _left_out(reports: LogReports, times: LoggedStepTimes | None) -> Message | None:
    """Name what shows that lines are missing, or that they are of another run than the settings."""
    if reports.restarts:
        return _("Its step numbers begin again in the middle")
    gaps = reports.steps[~reports.fresh]
    usual = float(np.median(gaps)) if len(gaps) else 0.0
    if len(gaps) and gaps.max() > MOST_LEFT_OUT * usual:
        most, mostly = f"{int(gaps.max()):,}", f"{int(usual):,}"
        return _(
            "Up to {most} steps lie between two of its lines, and mostly {mostly}", most=most, mostly=mostly
        )
    stamps = reports["wall"][np.isfinite(reports["wall"])]
    # What begins at zero is a clock of the run's own, which may begin again.
    passed = np.diff(stamps) if len(stamps) and stamps.min() > LONGEST_RUN_SECONDS else np.zeros(0)
    if len(passed) and (passed.min() < -CLOCK_SET_SECONDS or passed.max() > LONGEST_PAUSE_SECONDS):
        return _("Its times leap by hours")
    settled = times is not None and times.basis is not Basis.TIMESTAMPS and times.factor not in (None, 1.0)
    if settled and usual and reports.done[0] > LATEST_FIRST_REPORT * usual:
        return _("Its first line is of step {step}", step=f"{int(reports.done[0]):,}")
    return None


def figure_doubts(
    throughput: float, times: LoggedStepTimes, window: Window, facts: LogFacts
) -> Iterator[Doubt]:
    """What speaks against the figure: a few reports that took most of the time, or the run as a whole."""
    inside = slice(window.first, window.stop)
    seconds, counts = times.seconds[inside], times.counts[inside]
    settled = window.verdict is not WindowVerdict.NEVER_SETTLED
    middle = throughput
    if settled and (seconds > 0).all():
        middle = _usual_rate(throughput, seconds / counts, counts, times.factor or 1.0)
    if abs(throughput / middle - 1) > UNEVEN:
        excess = f"{middle / throughput - 1:+.0%}"
        yield doubt(DoubtCode.UNEVEN_SPEED, rate=f"{middle:,.6g}", unit=facts.unit, excess=excess)
    if facts.whole_rate and abs(throughput / facts.whole_rate - 1) > WHOLE_RUN_SHARE:
        yield doubt(DoubtCode.WHOLE_RUN_DIFFERS, rate=f"{facts.whole_rate:,.6g}", unit=facts.unit)


def _usual_rate(throughput: float, paces: Floats, weights: Floats, factor: float) -> float:
    """The rate at the median time of a step; the throughput itself where the median cannot be far from it.

    Millions of reports are sorted only where close to half of the steps are much faster or much slower.
    """
    relative = paces * (throughput / factor)
    nearly_half = 0.49 * weights.sum()
    if max(weights[relative < 1 - UNEVEN].sum(), weights[relative > 1 + UNEVEN].sum()) < nearly_half:
        return throughput
    order = np.argsort(paces)
    place = int(np.searchsorted(np.cumsum(weights[order]), weights.sum() / 2))
    return factor / float(paces[order][min(place, len(paces) - 1)])


def mean_of_rates(throughput: float, rates: Floats, facts: LogFacts) -> Iterator[Doubt]:
    """Whether the program's own conclusion is a mean of its rates that time does not bear out."""
    rates = rates[np.isfinite(rates)]
    if facts.own_rate is None or facts.cumulative or not len(rates):
        return
    is_mean = abs(facts.own_rate / float(rates.mean()) - 1) < SAME_MEAN if rates.mean() else False
    excess = facts.own_rate / throughput - 1
    if is_mean and abs(excess) > MEAN_OF_RATES_EXCESS:
        rate = f"{facts.own_rate:,.6g}"
        yield doubt(DoubtCode.MEAN_OF_RATES, rate=rate, unit=facts.unit, excess=f"{excess:+.1%}")


# What two runs of the same seed can share is left out: losses and rates of change may well be equal.
TIMED = ("wall", "rate", "seconds", "ms")
# A handful of rounded numbers can agree by chance.
FEWEST_LINES = 5


@dataclass(frozen=True)
class CopiedLogs:
    """A group of runs with the same times: the first of them, and how many there are."""

    first: int
    count: int


def columns_digest(columns: Mapping[str, Floats], names: Iterable[str]) -> bytes:
    """A digest of what these columns say, to the last digit."""
    sha256 = hashlib.sha256()
    for name in names:
        if name in columns:
            sha256.update(columns[name].tobytes())
    return sha256.digest()


def times_digest(columns: Mapping[str, Floats]) -> bytes | None:
    """A digest of the times that a run took; None where they are too few to tell it from another."""
    timed = [columns[name] for name in TIMED if name in columns]
    return columns_digest(columns, TIMED) if timed and len(timed[0]) >= FEWEST_LINES else None


def find_copies(digests: Iterable[bytes | None]) -> dict[int, CopiedLogs]:
    """The group of each run whose times are also another's, by the number of the run."""
    groups: dict[bytes, list[int]] = {}
    for index, digest in enumerate(digests):
        if digest is not None:
            groups.setdefault(digest, []).append(index)
    return {
        index: CopiedLogs(group[0], len(group))
        for group in groups.values()
        if len(group) > 1
        for index in group
    }


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
        doubts += window_doubts(window)
        if seconds.sum() > 0:
            steps_per_second = float(counts.sum() / seconds.sum()) if times.in_steps else None
            if times.factor is not None:
                factor = times.factor
                throughput = float(counts.sum() / seconds.sum()) * factor
                interval = rate_interval(seconds, counts)
                interval = interval and interval.mapped(lambda rate: rate * factor)
                doubts += figure_doubts(throughput, times, window, facts)
    several = list(several_speak(columns, joined, facts))
    if several and facts.scope is not Scope.RANK:
        throughput, interval, steps_per_second = None, None, None
        doubts += several
    elif throughput is None and (times is None or not len(times.seconds)) and _concluded(facts):
        throughput = _concluded(facts)
        doubts.append(own_figure(facts))
    elif throughput is None:
        doubts.append(missing_facts(times, window, facts))
    else:
        doubts += mean_of_rates(throughput, joined["rate"], facts)
    doubts += log_doubts(joined, times, facts)
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
    doubts = (doubt(DoubtCode.UNKNOWN_SHAPE) if own is None else own_figure(facts),)
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
