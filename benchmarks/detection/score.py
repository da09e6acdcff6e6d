"""Scores of a detector against the truth, by the end of a history and after every result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.simulated_histories import History

# A change may be placed so many points beside the true one: the margin of the Turing change-point benchmark
# (van den Burg & Williams 2020).
MARGIN = 5


@dataclass(frozen=True)
class Score:
    """Counts over histories; `delays` are the results after each step until it was first reported."""

    points: int
    steps: int
    hits: int
    alarms: int
    delays: tuple[int, ...] = ()

    @property
    def rate(self) -> float:
        return self.hits / self.steps if self.steps else float("nan")

    @property
    def alarms_per_1000(self) -> float:
        return 1000 * self.alarms / self.points

    def found_within(self, results: int) -> float:
        return sum(delay <= results for delay in self.delays) / self.steps if self.steps else float("nan")


def whole(history: History, reported: Sequence[int]) -> Score:
    """Score one look at the whole history: a step is matched by at most one reported change."""
    rest = list(reported)
    hits = 0
    for step in history.steps:
        near = [place for place in rest if abs(place - step.index) <= MARGIN]
        if near:
            hits += 1
            rest.remove(min(near, key=lambda place: abs(place - step.index)))
    return Score(len(history.points), len(history.steps), hits, len(rest))


def online(history: History, looks: Sequence[Sequence[int]]) -> Score:
    """Score a look after every result; `looks[i]` is what was reported when i + 1 points were there.

    An alarm is a place that is near no step and near no place reported before: one that moves about, or goes
    and comes back, counts once.
    """
    seen: list[int] = []
    delays: dict[int, int] = {}
    alarms = 0
    for last, reported in enumerate(looks):
        for place in reported:
            near = [
                step.index
                for step in history.steps
                if abs(place - step.index) <= MARGIN and step.index <= last
            ]
            if near:
                delays.setdefault(near[0], last - near[0] + 1)
            elif all(abs(place - other) > MARGIN for other in seen):
                alarms += 1
                seen.append(place)
    return Score(len(history.points), len(history.steps), len(delays), alarms, tuple(delays.values()))


def total(scores: Sequence[Score]) -> Score:
    """Add the counts up."""
    return Score(
        sum(score.points for score in scores),
        sum(score.steps for score in scores),
        sum(score.hits for score in scores),
        sum(score.alarms for score in scores),
        tuple(delay for score in scores for delay in score.delays),
    )
