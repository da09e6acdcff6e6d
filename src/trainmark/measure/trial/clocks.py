"""Whether the clock that timed a rank's steps went at the pace of its machine's."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trainmark.events.ranges import number_in
from trainmark.measure.trial.rank_events import RankEvents, TraceError

# What the probe tells where its process's clock left the machine's; see ClockCheck there.
CLOCK_DRIFT = "clock_drift"
# By how much a device's or another host's clock may run faster than ours.
CLOCK_TOLERANCE, CLOCK_SLACK_SECONDS = 0.01, 1.0
# A wall clock is set in single jumps (a time server, a machine that slept); a false pace is in all steps.
MOST_JUMPS = 3
# A process may be held up between reading the one clock and the other; some wall times are rounded.
READING_SECONDS, ROUNDED_TO = 0.05, (1.0, 0.1, 0.01)


def require_machine_clock(ranks: Sequence[RankEvents]) -> None:
    """TraceError where a rank's times cannot be those of its machine."""
    for number, rank in enumerate(ranks):
        span = _span(rank)
        for facts in (each.facts for each in (rank.start, rank.end) if each is not None):
            if drift := number_in(facts, CLOCK_DRIFT):
                raise TraceError(
                    f"while the clock of rank {number} went on by {span:.3g} s, its machine's went on by "
                    f"{max(0.0, span + drift):.3g} s: run it without what replaces clocks (faketime, "
                    "freezegun, time-machine)."
                )
        if not rank.resumed and abs(apart := _wall_ahead(rank)) > _wall_slack(rank) + CLOCK_TOLERANCE * span:
            raise TraceError(
                f"the steps of rank {number} last {span:.3g} s by their monotonic times and "
                f"{span + apart:.3g} s by their wall times: one of the two clocks is not the machine's."
            )


def _span(rank: RankEvents) -> float:
    known = np.array(rank.mono)
    known = known[np.isfinite(known)]
    return float(known[-1] - known[0]) if len(known) else 0.0


def _wall_ahead(rank: RankEvents) -> float:
    """Seconds by which wall times go on further than monotonic ones, in all steps but those of jumps."""
    apart = np.diff(np.array(rank.wall) - np.array(rank.mono))
    if not np.isfinite(apart).all() or len(apart) <= MOST_JUMPS:
        return 0.0
    return float(np.sum(apart[np.argsort(np.abs(apart))[:-MOST_JUMPS]]))


def _wall_slack(rank: RankEvents) -> float:
    """By how much rounding can part the two: in the whole span, and in each jump that was set aside."""
    wall = np.array(rank.wall)
    rounded = (
        unit for unit in ROUNDED_TO if np.allclose(wall, np.round(wall / unit) * unit, rtol=0, atol=1e-6)
    )
    return max(READING_SECONDS, (MOST_JUMPS + 1) * next(rounded, 0.0))
