"""Two subjects measured in turns, a pair of trials at a time, in a run folder of their own."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from trainmark.base.errors import UserError
from trainmark.measure.bisection import MeasuredPairs
from trainmark.runner.bisect.subject import BisectSubject, SkippedError, label_of, side_name, suite_of
from trainmark.runner.prepare import Prepared, prepare_program
from trainmark.runner.progress import RunDisplay
from trainmark.runner.run import execute, new_run
from trainmark.store.run import RUN, RunFolder
from trainmark.store.trial import TrialRecord
from trainmark.suite.model import Repeats
from trainmark.suite.plan import Plan, PlannedTrial
from trainmark.view.message import _

FAILURES_TO_SKIP = 2


class BisectionStoppedError(Exception):
    """The user stopped it; what was measured is safe."""


@dataclass(frozen=True)
class PairTrials:
    """The pairs so far, all trials (failed ones too) and the seconds they took."""

    pairs: MeasuredPairs
    trials: int
    seconds: float
    unit: str


class PairDisplay:
    """Counts the trials of a comparison among the most that it may take, not of the pair under way."""

    def __init__(self, display: RunDisplay, most: int) -> None:
        self._display, self._most = display, most
        self.progress, self.trial_ended, self.note = display.progress, display.trial_ended, display.note

    def trial_began(self, trial: PlannedTrial, number: int, total: int, seconds_left: float | None) -> None:
        self._display.trial_began(trial, number, 2 * self._most, None)


def measure_pairs(
    path: Path,
    first: BisectSubject,
    second: BisectSubject,
    origin: str | None,
    most: int,
    decided: Callable[[MeasuredPairs], bool],
    display: RunDisplay,
) -> PairTrials:
    """Measure pairs until `decided`, or `most` of them; go on where a run in this folder was cut short.

    SkippedError where the second subject does not run, UserError where the first, the yardstick, does not.
    """
    prepared = prepare_program(suite_of(first, second, most), "bisect.yaml", origin or str(Path.cwd()))
    with closing(prepared):
        slugs = [_slug(prepared, subject) for subject in (first, second)]
        run = _opened(path, prepared)
        begun = max((record.spec.repeat for record in run.records()), default=1)
        for count in range(begun, most + 1):
            records = run.records()
            trials = paired(records, slugs[0], slugs[1])
            if decided(trials.pairs):
                break
            _refuse_failing(path, records, slugs, (first, second))
            plan = with_rounds(prepared.plan, count)
            ending = execute(run, replace(prepared, plan=plan), PairDisplay(display, most))
            if ending.interrupted or ending.stop_asked:
                raise BisectionStoppedError
        records = run.records()
    _refuse_failing(path, records, slugs, (first, second))
    return paired(records, slugs[0], slugs[1])


def with_rounds(plan: Plan, rounds: int) -> Plan:
    cases = (replace(case, rules=replace(case.rules, repeats=Repeats(rounds, rounds))) for case in plan.cases)
    return replace(plan, cases=tuple(cases))


def paired(records: list[TrialRecord], first: str, second: str) -> PairTrials:
    """Join the trials of a round; a round in which one of the two failed gives no pair."""
    rates: dict[str, dict[int, float]] = {first: {}, second: {}}
    for record in records:
        if record.figure is not None:
            rates[record.spec.case][record.spec.repeat] = record.figure.throughput
    rounds = sorted(rates[first].keys() & rates[second].keys())
    pairs = tuple((rates[first][number], rates[second][number]) for number in rounds)
    unit = next((record.figure.unit for record in records if record.figure), "samples")
    return PairTrials(pairs, len(records), sum(record.seconds for record in records), unit)


def _opened(path: Path, prepared: Prepared) -> RunFolder:
    if (path / RUN).is_file():
        run = RunFolder(path)
        _set_aside_halves(run)
        return run
    # A folder without the file that is written last was cut short while it was made.
    shutil.rmtree(path, ignore_errors=True)
    return new_run(prepared, path.parent, path.name, "trainmark bisect")


def _set_aside_halves(run: RunFolder) -> None:
    """Measure a pair again of which only one half was: the other half would not lie beside it in time."""
    records = run.records()
    last = max((record.spec.repeat for record in records), default=0)
    latest = [record for record in records if record.spec.repeat == last]
    if len(latest) == 1:
        place = run.trial(latest[0].spec.case, last)
        place.set_aside(place.done, "unpaired")


def _slug(prepared: Prepared, subject: BisectSubject) -> str:
    for case in prepared.plan.cases:
        if case.label == label_of(subject.name):
            return case.slug
    reasons = [
        skip.reason for skip in prepared.plan.skipped if skip.case.label in (label_of(subject.name), None)
    ]
    reason = "; ".join(reasons).rstrip(".")
    raise SkippedError(reason or _("it is not planned on this machine"))


def _refuse_failing(
    path: Path, records: list[TrialRecord], slugs: Sequence[str], subjects: Sequence[BisectSubject]
) -> None:
    """Give up on a side that fails more often than not: a single crash costs its pair alone."""
    for slug, subject in zip(slugs, subjects, strict=True):
        own = [record for record in records if record.spec.case == slug]
        failed = [record for record in own if record.figure is None]
        if len(failed) < FAILURES_TO_SKIP or 2 * len(failed) <= len(own):
            continue
        last = f"{failed[-1].outcome}: {failed[-1].detail}".rstrip(".: ")
        reason = _(
            "{failed} of {trials} trials failed ({reason})", failed=len(failed), trials=len(own), reason=last
        )
        if subject is subjects[0]:
            raise UserError(f"{side_name(subject)} cannot be measured: {reason}; its logs are in {path}.")
        raise SkippedError(reason, len(records), sum(record.seconds for record in records))
