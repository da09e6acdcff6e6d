"""Two sides measured in turns, a pair of trials at a time, looked at after each; `watch` and `bisect` do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from trainmark.launch.outcome import Outcome
from trainmark.measure.ab import b_first
from trainmark.runner.interrupts import Interrupts
from trainmark.runner.session import set_aside_damaged
from trainmark.runner.trial import RunContext, run_trial
from trainmark.store.trial import TrialRecord
from trainmark.suite.model import Case
from trainmark.suite.plan import PlannedTrial


@dataclass(frozen=True)
class PairSide:
    """A case, the context of the run that keeps its trials, and what surrounds each: its variables."""

    case: Case
    context: RunContext
    around: Callable[[], AbstractContextManager[None]] = nullcontext

    @property
    def records(self) -> list[TrialRecord]:
        return [record for record in self.context.run.records() if record.spec.case == self.case.slug]


@dataclass(frozen=True)
class TrialPair:
    """The trials of equal number of two sides, which ended in whatever way."""

    number: int
    before: TrialRecord
    after: TrialRecord

    @property
    def throughputs(self) -> tuple[float, float] | None:
        """None where a trial failed."""
        if self.before.figure is None or self.after.figure is None:
            return None
        return self.before.figure.throughput, self.after.figure.throughput


def pairs_of(before: Iterable[TrialRecord], after: Iterable[TrialRecord]) -> list[TrialPair]:
    """Return the pairs of which both trials ended."""
    first, second = ({record.spec.repeat: record for record in records} for records in (before, after))
    return [
        TrialPair(number, first[number], second[number]) for number in sorted(first.keys() & second.keys())
    ]


def throughputs_of(pairs: Iterable[TrialPair]) -> tuple[tuple[float, float], ...]:
    """Return the throughputs of the pairs in which neither trial failed."""
    return tuple(pair.throughputs for pair in pairs if pair.throughputs is not None)


def unit_of(pairs: Iterable[TrialPair]) -> str:
    figures = (record.figure for pair in pairs for record in (pair.before, pair.after))
    return next((figure.unit for figure in figures if figure is not None), "samples")


def seconds_of(pairs: Iterable[TrialPair]) -> float:
    return sum(record.seconds for pair in pairs for record in (pair.before, pair.after))


def run_pairs(
    sides: tuple[PairSide, PairSide], seed: int, most: int, interrupts: Interrupts
) -> Iterator[list[TrialPair]]:
    """Yield all pairs so far before each further one; whoever has seen enough stops asking.

    It ends by itself only where the user stops it.
    """
    display = sides[0].context.display
    for side in sides:
        set_aside_damaged(side.context)
    _set_halves_aside(sides)
    while True:
        pairs = pairs_of(sides[0].records, sides[1].records)
        yield pairs
        number = pairs[-1].number + 1 if pairs else 1
        for place, side in enumerate(reversed(sides) if b_first(seed, number) else sides, 1):
            if interrupts.stop_soon:
                return
            trial = PlannedTrial(side.case, number)
            display.trial_began(trial, 2 * len(pairs) + place, 2 * most, None)
            with side.around():
                record = run_trial(trial, side.context)
            display.trial_ended(trial, record)
            if record.outcome == Outcome.INTERRUPTED.value:
                return


def _set_halves_aside(sides: Sequence[PairSide]) -> None:
    """Set a trial aside whose other half is missing: hours later it would not be taken side by side."""
    complete = {pair.number for pair in pairs_of(sides[0].records, sides[1].records)}
    for side in sides:
        for record in side.records:
            if record.spec.repeat not in complete:
                place = side.context.run.trial(record.spec.case, record.spec.repeat)
                place.set_aside(place.done, "unpaired")
