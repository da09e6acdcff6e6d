"""Where the time of a trial's steady window went: computing, waiting for other ranks or for data, long steps.

Ranks that train together end their steps together, so a slow one does not show in its step times but in how
little it waits: its own time, which is the step without the waiting for others, is longer than theirs.
Marked pauses are in no step; a long step may contain one that nobody marked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from trainmark.events.ranges import number_in, text_in
from trainmark.measure.figure import Breakdown, Pauses, RankTimes, StepParts, Straggler, TimeShares, Window
from trainmark.measure.statistics import CONFIDENCE, Floats, median_interval
from trainmark.measure.trace import Trace


@dataclass(frozen=True)
class _RankSeconds:
    """Seconds by rank and step inside the window; the last four add up to the first."""

    step: Floats
    compute: Floats
    communication: Floats
    data: Floats
    other: Floats

    @property
    def own(self) -> Floats:
        return self.step - self.communication


def breakdown_of(trace: Trace, window: Window) -> Breakdown | None:
    """None where the ranks do not tell working from waiting; one rank waits for no other."""
    times = _rank_seconds(trace, slice(window.first, window.stop))
    if times is None:
        return None
    own = np.median(times.own, axis=1)
    return Breakdown(
        shares=_shares(times),
        parts=_parts(times),
        ranks=tuple(
            RankTimes(rank, node, _shares(times, rank), float(own[rank]))
            for rank, node in enumerate(trace.nodes)
        ),
    )


def _rank_seconds(trace: Trace, chosen: slice) -> _RankSeconds | None:
    step = trace.rank_seconds[:, chosen]
    alone = trace.world_size == 1
    if len(step) != trace.world_size or (trace.rank_data_wait if alone else trace.rank_communication) is None:
        return None
    nothing = np.zeros_like(step)
    communication = _at_most(trace.rank_communication, step, chosen)
    rest = step - communication
    if trace.rank_compute is None:
        data = _at_most(trace.rank_data_wait, rest, chosen)
        return _RankSeconds(step, rest - data, communication, data, nothing)
    # A device that runs behind its host works on while the host waits for data: only the rest is felt.
    compute = _at_most(trace.rank_compute, rest, chosen)
    data = _at_most(trace.rank_data_wait, rest - compute, chosen)
    return _RankSeconds(step, compute, communication, data, rest - compute - data)


def _at_most(column: Floats | None, limit: Floats, chosen: slice) -> Floats:
    return np.zeros_like(limit) if column is None else np.clip(column[:, chosen], 0, np.maximum(limit, 0))


def _shares(times: _RankSeconds, rank: int | None = None) -> TimeShares:
    def share(seconds: Floats) -> float:
        counted, whole = (seconds, times.step) if rank is None else (seconds[rank], times.step[rank])
        return float(counted.sum() / whole.sum()) if whole.sum() > 0 else 0.0

    return TimeShares(share(times.compute), share(times.communication), share(times.data), share(times.other))


def _parts(times: _RankSeconds) -> StepParts:
    """The typical rank of a step is the lower median: of two the faster, so that the other counts as slow."""
    whole = float(times.step.mean(axis=0).sum())
    typical = np.argsort(times.own, axis=0, kind="stable")[[(len(times.own) - 1) // 2]]

    def share(seconds: Floats) -> float:
        return float(np.take_along_axis(seconds, typical, axis=0).sum()) / whole

    compute, data, other = share(times.compute), share(times.data), share(times.other)
    own = compute + data + other
    # Ranks end a step together but for microseconds, by which the parts could exceed the whole.
    communication = min(float(times.communication.min(axis=0).sum()) / whole, max(0.0, 1 - own))
    return StepParts(compute, data, other, 1 - own - communication, communication)


# Of the others' own time; devices of one kind differ by less.
STRAGGLER_EXCESS = 0.05

# A list of hundreds of slow ranks says no more than that the others are fast.
MOST_STRAGGLERS = 8


@dataclass(frozen=True)
class _SlowRow:
    """A row of own times that is above the others; both are medians over the steps."""

    row: int
    own: float
    others: float


def stragglers(trace: Trace, window: Window, throughput: float) -> tuple[Straggler, ...]:
    """Nodes first, then ranks on the other nodes; the slowest first.

    A row is slow where its median own time exceeds that of the others by more than 5 %, and the
    distribution-free interval for the difference, step by step, lies above zero.
    """
    chosen = slice(window.first, window.stop)
    own = own_seconds(trace, chosen)
    step = float(np.median(trace.step_seconds[chosen]))
    if len(own) < 2 or step <= 0:
        return ()

    def named(slow: _SlowRow, rank: int | None, node: str | None) -> Straggler:
        cost = min((slow.own - slow.others) / step, 1 - slow.others / slow.own)
        return Straggler(rank, node, slow.own, slow.others, cost, throughput * cost / (1 - cost))

    nodes = list(dict.fromkeys(trace.nodes))
    slow_nodes = []
    if None not in nodes and len(nodes) > 1:
        rows = np.array([np.median(own[[n == node for n in trace.nodes]], axis=0) for node in nodes])
        slow_nodes = [named(slow, None, nodes[slow.row]) for slow in _slow_rows(rows)]
    slow_names = {straggler.node for straggler in slow_nodes}
    ranks = [
        named(slow, slow.row, trace.nodes[slow.row])
        for slow in _slow_rows(own)
        if trace.nodes[slow.row] not in slow_names
    ]
    return (*slow_nodes, *ranks)


def own_seconds(trace: Trace, chosen: slice) -> Floats:
    """By rank and step: the step without waiting for others, where the ranks tell it.

    Where they do not, the step itself; and where all ranks read one clock and step alike, with it the time
    by which a rank ends after the first one.
    """
    seconds = trace.rank_seconds[:, chosen]
    if trace.rank_communication is not None:
        return np.asarray(seconds - trace.rank_communication[:, chosen], dtype=np.float64)
    typical = np.median(seconds, axis=1)
    if not trace.one_clock or typical.max() > typical.min() * (1 + STRAGGLER_EXCESS):
        return seconds
    ends = np.cumsum(trace.rank_seconds, axis=1)[:, chosen]
    return np.asarray(seconds + ends - ends.min(axis=0), dtype=np.float64)


def _slow_rows(own: Floats) -> Iterator[_SlowRow]:
    typical = np.median(own, axis=1)
    ordered = np.sort(typical)
    for row in np.argsort(-typical)[:MOST_STRAGGLERS]:
        others = float(np.median(np.delete(ordered, np.searchsorted(ordered, typical[row]))))
        if others <= 0 or typical[row] <= others * (1 + STRAGGLER_EXCESS):
            return
        apart = median_interval((own[row] - np.median(np.delete(own, row, axis=0), axis=0)).tolist())
        if apart is not None and apart.confidence >= CONFIDENCE and apart.low > 0:
            yield _SlowRow(int(row), float(typical[row]), others)


# More steps than this are no exception, whatever they take.
MOST_LONG_SHARE = 0.2


@dataclass(frozen=True)
class LongStepRule:
    """From which multiple of the median on a step is long, and from which share of the time on it counts."""

    times: float
    share: float
    regular: bool


# What comes back at one distance is no noise. What does not is a stall as often as an evaluation, and batches
# of unequal lengths are neither: only a few steps that stand far out raise a doubt.
LONG_STEP_RULES = (LongStepRule(1.5, 0.02, regular=True), LongStepRule(3.0, 0.1, regular=False))
FEWEST_REGULAR, REGULAR_SHARE = 3, 0.75


@dataclass(frozen=True)
class LongSteps:
    """`seconds` is what they take beyond the median step; `every` is their distance where there is one."""

    count: int
    seconds: float
    every: int | None
    usual_seconds: float


def long_steps(step_seconds: Floats, data_wait: Floats | None) -> LongSteps | None:
    """A few steps that take a share of the time; waiting for data has a doubt of its own, and is training."""
    work = step_seconds if data_wait is None else np.maximum(step_seconds - data_wait, 0.0)
    usual = float(np.median(work)) if len(work) else 0.0
    for rule in LONG_STEP_RULES if usual > 0 else ():
        places = np.flatnonzero(work > rule.times * usual)
        seconds = float((work[places] - usual).sum())
        if not 0 < len(places) <= MOST_LONG_SHARE * len(work) or seconds < rule.share * step_seconds.sum():
            continue
        every = _usual_distance(np.diff(places).tolist())
        if every is not None or not rule.regular:
            return LongSteps(len(places), seconds, every, usual)
    return None


def _usual_distance(gaps: list[int]) -> int | None:
    if len(gaps) < FEWEST_REGULAR - 1:
        return None
    gap, count = Counter(gaps).most_common(1)[0]
    return gap if count >= REGULAR_SHARE * len(gaps) else None


def pauses_in(trace: Trace, window: Window) -> tuple[Pauses, ...]:
    """The pauses within the window that are in no step, by what they were; the first of all ranks tells."""
    numbers = range(len(trace.ends)) if trace.numbers is None else trace.numbers
    inside = set(map(int, numbers[window.first : window.stop]))
    seconds: dict[str, list[float]] = {}
    for kind, lasted in _pause_seconds(trace, inside):
        seconds.setdefault(kind, []).append(lasted)
    return tuple(Pauses(kind, len(each), sum(each)) for kind, each in seconds.items())


def _pause_seconds(trace: Trace, inside: set[int]) -> Iterable[tuple[str, float]]:
    for mark in trace.marks:
        kind, lasted = text_in(mark.facts, "pause"), number_in(mark.facts, "seconds")
        if mark.rank == 0 and mark.ends_a_pause and mark.step in inside and kind and lasted is not None:
            yield kind, lasted
