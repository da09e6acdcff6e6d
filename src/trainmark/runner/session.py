"""A whole run: round after round until every case has its trials, or someone says stop."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from trainmark.launch.job.outcome import Outcome
from trainmark.measure.result.adaptive import tight_enough
from trainmark.runner.interrupts import Interrupts
from trainmark.runner.trial.trial import RunContext, run_trial
from trainmark.store.trial import TrialRecord, finished_trials
from trainmark.suite.model import Case
from trainmark.suite.plan import Plan, Trial

# A case whose first trials all fail will fail again: the rest of its trials are better spent elsewhere.
FAILURES_TO_GIVE_UP = 2


@dataclass(frozen=True)
class RunEnding:
    """`stop_asked` is also true where a Ctrl-C came in the last trial and so interrupted nothing."""

    tally: Tally
    interrupted: bool
    stop_asked: bool = False


@dataclass
class Tally:
    """What has been seen of each case so far, earlier sessions of a resumed run included."""

    rates: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    failures: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    unplaced: int = 0
    """Trials that were to run and for which too few nodes were left."""

    def add(self, record: TrialRecord) -> None:
        case = record.spec.case
        self.seconds[case].append(record.seconds)
        if record.figure is not None:
            self.rates[case].append(record.figure.throughput)
        else:
            self.failures[case] += 1

    @property
    def failed(self) -> int:
        return sum(self.failures.values()) + self.unplaced

    @property
    def done(self) -> int:
        return sum(len(rates) for rates in self.rates.values())

    def wants_more(self, trial: Trial) -> bool:
        """Whether this trial is still worth its time."""
        case, repeats = trial.case.slug, trial.case.rules.repeats
        if self.failures[case] >= FAILURES_TO_GIVE_UP and not self.rates[case]:
            return False
        if trial.repeat <= repeats.least or repeats.until is None:
            return True
        return not tight_enough(self.rates[case], repeats.until)

    def seconds_left(self, plan: Plan) -> float | None:
        """From the trials so far: what the sure ones still to come will take; None before the first."""
        known = [sum(times) / len(times) for times in self.seconds.values() if times]
        if not known:
            return None
        usual = sum(known) / len(known)
        return sum(self._left(case) * self._each(case, usual) for case in plan.cases)

    def _left(self, case: Case) -> int:
        return max(0, case.rules.repeats.least - len(self.seconds[case.slug]))

    def _each(self, case: Case, otherwise: float) -> float:
        times = self.seconds[case.slug]
        return sum(times) / len(times) if times else otherwise


def set_aside_damaged(context: RunContext) -> None:
    """Trials that can neither be read nor made again from their events are measured again."""
    readable = {(record.spec.case, record.spec.repeat) for record in context.run.records()}
    for folder in list(finished_trials(context.run.trials)):
        if (place := (folder.parent.name, int(folder.name))) not in readable:
            context.run.trial(*place).set_aside(folder, "damaged")
            context.display.note(f"{place[0]}/{folder.name} is damaged and set aside; it is measured again")


def carry_out(plan: Plan, context: RunContext, interrupts: Interrupts) -> RunEnding:
    """Cut short only if there was more to do: a Ctrl-C in the last trial interrupts nothing."""
    tally = Tally()
    finished = set()
    set_aside_damaged(context)
    for record in context.run.records():
        tally.add(record)
        finished.add((record.spec.case, record.spec.repeat))
    total = len(plan.certain())
    number = len(finished)
    for repeat in range(1, plan.rounds + 1):
        for trial in plan.round(repeat):
            if (trial.case.slug, trial.repeat) in finished or not tally.wants_more(trial):
                continue
            if interrupts.stop_soon:
                return RunEnding(tally, interrupted=True)
            if context.nodes.too_few_for(trial.case, context.display.note):
                tally.unplaced += 1
                continue
            number += 1
            context.display.trial_began(trial, number, max(total, number), tally.seconds_left(plan))
            record = run_trial(trial, context)
            context.display.trial_ended(trial, record)
            if record.outcome == Outcome.INTERRUPTED.value:
                return RunEnding(tally, interrupted=True)
            tally.add(record)
            if record.outcome == Outcome.LOST.value:
                context.nodes.require_allocation()
    return RunEnding(tally, interrupted=False, stop_asked=interrupts.stop_soon)
