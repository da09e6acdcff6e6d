"""Where the time of a trial's steady window went: computing, waiting for other ranks, waiting for data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trainmark.measure.figure import Breakdown, RankTimes, StepParts, TimeShares, Window
from trainmark.measure.statistics.arrays import Floats
from trainmark.measure.trial.trace import Trace


@dataclass(frozen=True)
class _Times:
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
    times = _times(trace, slice(window.first, window.stop))
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


def _times(trace: Trace, chosen: slice) -> _Times | None:
    step = trace.rank_seconds[:, chosen]
    alone = trace.world_size == 1
    if len(step) != trace.world_size or (trace.rank_data_wait if alone else trace.rank_communication) is None:
        return None
    nothing = np.zeros_like(step)
    communication = _at_most(trace.rank_communication, step, chosen)
    rest = step - communication
    if trace.rank_compute is None:
        data = _at_most(trace.rank_data_wait, rest, chosen)
        return _Times(step, rest - data, communication, data, nothing)
    # A device that runs behind its host works on while the host waits for data: only the rest is felt.
    compute = _at_most(trace.rank_compute, rest, chosen)
    data = _at_most(trace.rank_data_wait, rest - compute, chosen)
    return _Times(step, compute, communication, data, rest - compute - data)


def _at_most(column: Floats | None, limit: Floats, chosen: slice) -> Floats:
    return np.zeros_like(limit) if column is None else np.clip(column[:, chosen], 0, np.maximum(limit, 0))


def _shares(times: _Times, rank: int | None = None) -> TimeShares:
    def share(seconds: Floats) -> float:
        counted, whole = (seconds, times.step) if rank is None else (seconds[rank], times.step[rank])
        return float(counted.sum() / whole.sum()) if whole.sum() > 0 else 0.0

    return TimeShares(share(times.compute), share(times.communication), share(times.data), share(times.other))


def _parts(times: _Times) -> StepParts:
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
