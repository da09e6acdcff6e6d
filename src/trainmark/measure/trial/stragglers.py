"""Ranks and nodes that hold the others back, and what that costs.

Ranks that train together end their steps together, so a slow one does not show in its step times but in how
little it waits: its own time, which is the step without the waiting for others, is longer than theirs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from trainmark.measure.figure import Straggler, Window
from trainmark.measure.statistics.arrays import Floats
from trainmark.measure.statistics.intervals import CONFIDENCE, median_interval
from trainmark.measure.trial.trace import Trace

# Of the others' own time; devices of one kind differ by less.
STRAGGLER_EXCESS = 0.05

# A list of hundreds of slow ranks says no more than that the others are fast.
MOST_NAMED = 8


@dataclass(frozen=True)
class _Slow:
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

    def named(slow: _Slow, rank: int | None, node: str | None) -> Straggler:
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


def _slow_rows(own: Floats) -> Iterator[_Slow]:
    typical = np.median(own, axis=1)
    ordered = np.sort(typical)
    for row in np.argsort(-typical)[:MOST_NAMED]:
        others = float(np.median(np.delete(ordered, np.searchsorted(ordered, typical[row]))))
        if others <= 0 or typical[row] <= others * (1 + STRAGGLER_EXCESS):
            return
        apart = median_interval((own[row] - np.median(np.delete(own, row, axis=0), axis=0)).tolist())
        if apart is not None and apart.confidence >= CONFIDENCE and apart.low > 0:
            yield _Slow(int(row), float(typical[row]), others)
