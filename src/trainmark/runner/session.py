"""A whole run: round after round until every case has its trials, or someone says stop."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from trainmark.launch.launcher import ClusterLauncher
from trainmark.launch.outcome import Outcome
from trainmark.measure.ab import BaselineContrast, contrasts
from trainmark.measure.result import tight_enough
from trainmark.runner.interrupts import Interrupts
from trainmark.runner.quiet import disturbance, told_after
from trainmark.runner.trial import RunContext, run_trial
from trainmark.store.trial import TrialRecord, finished_trials
from trainmark.suite.model import Case
from trainmark.suite.plan import Plan, PlannedTrial

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

    against: Sequence[str] = ()
    """The cases of a comparison, the baseline first."""
    rates: dict[str, dict[int, float]] = field(default_factory=lambda: defaultdict(dict))
    """Throughputs by case and round."""
    failures: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    failures_now: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    """Without those of earlier sessions: who resumes a run has changed something."""
    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    unplaced: int = 0
    """Trials that were to run and for which too few nodes were left."""

    def add(self, record: TrialRecord, earlier: bool = False) -> None:
        case = record.spec.case
        self.seconds[case].append(record.seconds)
        if record.figure is not None:
            self.rates[case][record.spec.repeat] = record.figure.throughput
        else:
            self.failures[case] += 1
            self.failures_now[case] += not earlier

    @property
    def failed(self) -> int:
        return sum(self.failures.values()) + self.unplaced

    @property
    def done(self) -> int:
        return sum(len(rates) for rates in self.rates.values())

    def gives_up(self, case: str) -> bool:
        return self.failures_now[case] >= FAILURES_TO_GIVE_UP and not self.rates[case]

    def wants_more(self, trial: PlannedTrial) -> bool:
        """Whether this trial is still worth its time."""
        case, repeats = trial.case.slug, trial.case.rules.repeats
        if self.gives_up(case):
            return False
        if trial.repeat <= repeats.least:
            return True
        if case in self.against:
            return case in self._uncertain()
        return repeats.until is None or not tight_enough([*self.rates[case].values()], repeats.until)

    @property
    def contrasts(self) -> tuple[BaselineContrast, ...]:
        return contrasts(self.against, self.rates) if self.against else ()

    def _uncertain(self) -> set[str]:
        """The cases whose ratios are not certain yet, and the baseline where there are any."""
        found = {contrast.case for contrast in self.contrasts if not contrast.is_certain}
        left = {case for case in found if not self.gives_up(case)}
        return {self.against[0], *left} if left and not self.gives_up(self.against[0]) else set()

    def seconds_left(self, plan: Plan) -> float | None:
        """From the trials so far: what the sure ones still to come will take; None where nobody knows."""
        known = [sum(times) / len(times) for times in self.seconds.values() if times]
        if not known:
            return None
        usual = sum(known) / len(known)
        # Beyond the sure ones, nobody knows how many it takes.
        return sum(self._left(case) * self._each(case, usual) for case in plan.cases) or None

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


def certain_line(contrast: BaselineContrast) -> str:
    """`train-compile ÷ train is certain after 6 pairs: ×1.230 [1.190, 1.270], faster`."""
    found = contrast.judgement
    assert found is not None
    bounds = f" [{contrast.bounds[0]:.3f}, {contrast.bounds[1]:.3f}]" if contrast.bounds else ""
    return (
        f"{contrast.case} ÷ {contrast.baseline} is certain after {found.pairs} pairs: "
        f"×{found.ratio:.3f}{bounds}, {found.verdict.value}"
    )


def set_aside_unpaired(plan: Plan, context: RunContext) -> None:
    """A pair is of trials that took turns: a round of a comparison that was cut short is measured again."""
    if not plan.against:
        return
    tally, rounds = Tally(plan.against), defaultdict(list)
    for record in context.run.records():
        rounds[record.spec.repeat].append(record)
    for repeat, records in sorted(rounds.items()):
        ran = {record.spec.case for record in records}
        wanted = {trial.case.slug for trial in plan.round(repeat) if tally.wants_more(trial)}
        for record in records:
            if wanted <= ran:
                tally.add(record, earlier=True)
            elif record.spec.case in wanted:
                place = context.run.trial(record.spec.case, repeat)
                place.set_aside(place.done, "unpaired")


def carry_out(plan: Plan, context: RunContext, interrupts: Interrupts) -> RunEnding:
    """Cut short only if there was more to do: a Ctrl-C in the last trial interrupts nothing."""
    tally = Tally(plan.against)
    finished = set()
    set_aside_damaged(context)
    set_aside_unpaired(plan, context)
    for record in context.run.records():
        tally.add(record, earlier=True)
        finished.add((record.spec.case, record.spec.repeat))
    certain = {contrast.case for contrast in tally.contrasts if contrast.is_certain}
    cluster = context.launcher if isinstance(context.launcher, ClusterLauncher) else None
    warned = False

    def disturbed() -> str:
        return disturbance(context.gpus, cluster)

    def stopping() -> bool:
        return interrupts.stop_now() or interrupts.stop_soon

    total = len(plan.certain())
    most = sum(case.rules.repeats.most for case in plan.cases)
    number = len(finished)
    for repeat in range(1, plan.rounds + 1):
        for trial in plan.round(repeat):
            if (trial.case.slug, trial.repeat) in finished or not tally.wants_more(trial):
                continue
            context.quiet.wait(disturbed, context.display.note, stopping)
            if interrupts.stop_soon:
                return RunEnding(tally, interrupted=True)
            if context.nodes.too_few_for(trial.case, context.display.note):
                tally.unplaced += 1
                continue
            number += 1
            if trial.repeat > trial.case.rules.repeats.least and total < most:
                context.display.note(f"not certain after {number - 1} trials: up to {most - number + 1} more")
                total = most
            context.display.trial_began(trial, number, max(total, number), tally.seconds_left(plan))
            record = run_trial(trial, context)
            context.display.trial_ended(trial, record)
            if record.outcome == Outcome.INTERRUPTED.value:
                return RunEnding(tally, interrupted=True)
            tally.add(record)
            if tally.gives_up(record.spec.case) and trial.repeat < trial.case.rules.repeats.least:
                context.display.note(
                    f"{trial.case.slug}: {FAILURES_TO_GIVE_UP} trials failed and none succeeded, so the "
                    f"others are left out; `trainmark run --resume {context.run.path}` goes on with them."
                )
            if not warned and record.figure is not None and number < total:
                warned = True
                if busy := told_after(record.figure, cluster is None):
                    context.display.note(busy)
            for contrast in tally.contrasts:
                if contrast.is_certain and contrast.case not in certain:
                    certain.add(contrast.case)
                    context.display.note(certain_line(contrast))
            if record.outcome == Outcome.LOST.value:
                context.nodes.require_allocation()
    return RunEnding(tally, interrupted=False, stop_asked=interrupts.stop_soon)
