"""Doubts about the figure of a run that someone else logged, and logs that are copies of each other.

Two runs never take the same times to the last digit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from trainmark.measure.doubts import Doubt, DoubtCode
from trainmark.measure.figure import Window, WindowVerdict
from trainmark.measure.log_steps import Basis, LogFacts, LoggedStepTimes, LogReports
from trainmark.measure.statistics import Floats
from trainmark.measure.steady_window import SHORTEST_WINDOW

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
        yield Doubt(
            DoubtCode.NEVER_SETTLED,
            f"The speed never settled within {window.stop} reports: "
            "take a longer log, or look for what moves it.",
        )
    elif window.verdict is WindowVerdict.TOO_SHORT:
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


def missing_facts(times: LoggedStepTimes | None, window: Window | None, facts: LogFacts) -> Doubt:
    """Say why there is no throughput: what the log lacks, and the option that completes it."""
    if times is None or window is None or not times.seconds[window.first : window.stop].sum() > 0:
        return Doubt(
            DoubtCode.SCOPE_AMBIGUOUS,
            "The log gives neither rates nor times of counted steps: look for another log of the same run.",
        )
    inside = slice(window.first, window.stop)
    rate = float(times.counts[inside].sum() / times.seconds[inside].sum())
    if times.in_steps:
        sentence = f"The log tells steps ({rate:.4g} steps/s) but not {_missing(facts)}."
    else:
        sentence = (
            f"Its rates ({rate:.4g} {facts.unit}/s) are one device's, and it does not say how many ran: "
            "give --devices."
        )
    return Doubt(DoubtCode.SCOPE_AMBIGUOUS, sentence)


def _missing(facts: LogFacts) -> str:
    if facts.unit == "tokens":
        return "the tokens of a step: give --samples-per-step"
    if facts.accumulation_untold:
        return "the samples of a step with all that it accumulates: give --samples-per-step"
    if facts.batch_per_device is not None:
        return "the number of devices: give --devices"
    if facts.world_size is not None:
        return "the batch of a device: give --batch"
    return "the samples of a step: give --batch and --devices, or --samples-per-step"


def own_figure(facts: LogFacts) -> Doubt:
    return Doubt(
        DoubtCode.OWN_FIGURE,
        f"Only the program's own conclusion ({facts.own_rate:,.6g} {facts.unit}/s) tells the speed, warm-up "
        "and pauses included: take a log with times or rates.",
    )


def several_speak(columns: Mapping[str, Floats], reports: LogReports, facts: LogFacts) -> Iterator[Doubt]:
    """Whether lines of one step differ in their loss, in a format that one process prints for all.

    The same line twice is no second process: some loggers print a step at two levels of detail.
    """
    losses, steps = columns.get("loss"), columns.get("step")
    if reports.ranks < 2 or facts.every_rank or losses is None or steps is None:
        return
    again = (steps[1:] == steps[:-1]) & ~np.isnan(losses[1:]) & ~np.isnan(losses[:-1])
    if np.any(again & (losses[1:] != losses[:-1])):
        yield Doubt(
            DoubtCode.SCOPE_AMBIGUOUS,
            f"About {reports.ranks} processes print each step where one should, and none says whether its "
            "rate is its own or that of all: look for it in the launch command.",
        )


def log_doubts(reports: LogReports, times: LoggedStepTimes | None, facts: LogFacts) -> Iterator[Doubt]:
    """What speaks against the log itself: how it ended, its order, and settings that contradict."""
    if facts.ended is not None:
        yield Doubt(
            DoubtCode.RUN_CUT_SHORT,
            f"The run did not end well ({facts.ended}): use a log of a run that finished.",
        )
    if facts.disordered is not None or _disordered(reports):
        yield Doubt(
            DoubtCode.OUT_OF_ORDER,
            "Its lines are not in order: they may be of several runs, or sorted; use the log as it was "
            "written.",
        )
    elif (missing := _left_out(reports, times)) is not None:
        yield Doubt(DoubtCode.LINES_MISSING, f"{missing}: see that the log is whole and holds one run.")
    if facts.conflicting:
        yield Doubt(
            DoubtCode.SETTINGS_CONFLICT,
            f"The log has more than one value of {', '.join(facts.conflicting)}, and the first was used: "
            "see that it holds one run.",
        )


def _disordered(reports: LogReports) -> bool:
    stamps = reports["wall"][np.isfinite(reports["wall"])]
    falls = max(reports.falls, int((np.diff(stamps) < 0).sum()))
    return falls >= FEWEST_FALLS and falls > MOST_FALLS_SHARE * len(reports.steps)


def _left_out(reports: LogReports, times: LoggedStepTimes | None) -> str | None:
    """Name what shows that lines are missing, or that they are of another run than the settings."""
    if reports.restarts:
        return "Its step numbers begin again in the middle"
    gaps = reports.steps[~reports.fresh]
    usual = float(np.median(gaps)) if len(gaps) else 0.0
    if len(gaps) and gaps.max() > MOST_LEFT_OUT * usual:
        return f"Up to {int(gaps.max()):,} steps lie between two of its lines, and mostly {int(usual):,}"
    stamps = reports["wall"][np.isfinite(reports["wall"])]
    # What begins at zero is a clock of the run's own, which may begin again.
    passed = np.diff(stamps) if len(stamps) and stamps.min() > LONGEST_RUN_SECONDS else np.zeros(0)
    if len(passed) and (passed.min() < -CLOCK_SET_SECONDS or passed.max() > LONGEST_PAUSE_SECONDS):
        return "Its times leap by hours"
    settled = times is not None and times.basis is not Basis.TIMESTAMPS and times.factor not in (None, 1.0)
    if settled and usual and reports.done[0] > LATEST_FIRST_REPORT * usual:
        return f"Its first line is of step {int(reports.done[0]):,}"
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
        yield Doubt(
            DoubtCode.UNEVEN_SPEED,
            f"Half of its steps ran at {middle:,.6g} {facts.unit}/s or more, {middle / throughput - 1:+.0%} "
            "against the whole window: look for what stalled the others.",
        )
    if facts.whole_rate and abs(throughput / facts.whole_rate - 1) > WHOLE_RUN_SHARE:
        yield Doubt(
            DoubtCode.WHOLE_RUN_DIFFERS,
            f"The run as a whole, from its first count to its last, gives {facts.whole_rate:,.6g} "
            f"{facts.unit}/s: check what its counts mean.",
        )


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
        yield Doubt(
            DoubtCode.MEAN_OF_RATES,
            f"The program's own {facts.own_rate:,.6g} {facts.unit}/s is a mean of rates, {excess:+.1%} "
            "against samples over time: use the figure given here.",
        )


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
