"""Carries a bisection out: good beside bad, then item after item beside good, then the culprit confirmed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path

from trainmark.base.errors import UserError
from trainmark.measure import bisection
from trainmark.measure.ab import judge
from trainmark.measure.bisection import (
    Bisection,
    BisectionFinding,
    BisectionRules,
    BisectionSearch,
    BisectionStep,
    ChangeSide,
    DeltaDebugging,
    MeasuredPairs,
    PairedMeasurement,
    setting_words,
    side_of,
)
from trainmark.runner.bisect.commits import CommitHistory, CommitSubjects
from trainmark.runner.bisect.packages import PackageSubjects, parse_requirement
from trainmark.runner.bisect.settings import SettingSubjects
from trainmark.runner.bisect.state import BisectionFolder, BisectRequest, BisectState
from trainmark.runner.bisect.subject import (
    BisectSubject,
    BisectSubjects,
    SkippedError,
    label_of,
    measure_pairs,
    side_name,
)
from trainmark.runner.inventory import this_machine
from trainmark.runner.pairs import seconds_of, throughputs_of, unit_of
from trainmark.runner.progress import RunDisplay
from trainmark.suite import load
from trainmark.suite.model import Case, Suite, SuiteError
from trainmark.view.message import _

Items = tuple[int, ...]
REFERENCE = "00-reference"


@dataclass
class BisectDriver:
    """`origin` is the folder that a user's program runs in; `state` is what is on disk at any moment."""

    folder: BisectionFolder
    subjects: BisectSubjects
    rules: BisectionRules
    case_name: str
    origin: str | None
    display: RunDisplay
    state: BisectState

    def bisect(self) -> Bisection:
        """Go on from the state to the end; SkippedError never leaves it."""
        good, bad = self._ends()
        reference = self._reference(good, bad)
        change = self.rules.change(self.rules.reference(reference.pairs))
        if change is None:
            alike = self.rules.reference_decided(reference.pairs)
            return self._result(
                reference, BisectionFinding.NO_CHANGE if alike else BisectionFinding.UNDECIDED
            )
        if self.subjects.kind == "settings":
            return self._settings(good, reference, change)
        return self._ordered(good, reference, change)

    def _ends(self) -> tuple[Items, Items]:
        if self.subjects.kind == "settings":
            return (), tuple(range(len(self.subjects.names)))
        return (0,), (len(self.subjects.names) - 1,)

    def _reference(self, good: Items, bad: Items) -> PairedMeasurement:
        if self.state.reference is not None:
            return self.state.reference
        first, second, seconds = self._both(good, bad)
        self.display.note(f"{_end(first, 'good')} beside {_end(second, 'bad')}")
        try:
            measured = self._measured(REFERENCE, first, second, self.rules.reference_decided)
        except SkippedError as error:
            place = f"; its logs are in {self.folder.runs / REFERENCE}" if error.trials else ""
            raise UserError(f"{_end(second, 'bad')} cannot be measured: {error}{place}.") from error
        self._keep(reference=measured, preparation=self.state.preparation + seconds)
        self.display.note(f"{side_name(second)} is ×{_figure(measured)} of {side_name(first)}")
        return measured

    def _both(self, good: Items, bad: Items) -> tuple[BisectSubject, BisectSubject, float]:
        began = time.monotonic()
        try:
            first, second = self._prepared(good), self._prepared(bad)
        except SkippedError as error:
            reason = str(error).rstrip(".")
            raise UserError(f"an end of the bisection cannot be made ready: {reason}.") from error
        return first, second, time.monotonic() - began

    def _prepared(self, items: Items) -> BisectSubject:
        if self.subjects.kind != "settings":
            self.display.note(f"preparing {self.subjects.names[items[0]]} …")
        return self.subjects.prepare(items)

    def _ordered(self, good: Items, reference: PairedMeasurement, change: float) -> Bisection:
        looking = BisectionSearch(
            len(self.subjects.names), {step.items[0]: step.side for step in self.state.steps}
        )
        while (item := looking.next_item) is not None:
            spent = sum(step.error for step in self.state.steps)
            error = bisection.decision_error(self.rules.search_error - spent, looking.decisions_left)
            about = f"about {looking.decisions_left} left, {len(looking.suspects)} suspects"
            step = self._step((item,), good, change, error, about)
            looking = looking.answered(item, step.side)
            used = {0, looking.last_good, looking.first_bad, looking.length - 1}
            self.subjects.release(used)
        previous, culprit = looking.last_good, looking.first_bad
        confirmation = self._confirmation(previous, culprit, reference)
        names = tuple(self.subjects.names[item] for item in looking.suspects)
        finding = BisectionFinding.FOUND if len(names) == 1 else BisectionFinding.NARROWED
        if not _same_direction(confirmation, reference, self.rules):
            finding = BisectionFinding.UNCONFIRMED
        return self._result(reference, finding, names, confirmation, self.subjects.notes(culprit, previous))

    def _settings(self, good: Items, reference: PairedMeasurement, change: float) -> Bisection:
        names = self.subjects.names
        looking = DeltaDebugging(len(names), {step.items: step.side for step in self.state.steps})
        while (subset := looking.next_subset) is not None:
            error = bisection.nth_decision_error(self.rules.search_error, len(self.state.steps) + 1)
            about = f"{len(looking.culprits)} of {len(names)} differences left"
            step = self._step(subset, good, change, error, about)
            looking = looking.answered(subset, step.side)
        culprits = looking.culprits
        # The comparison that named them; all of them together are the bad side itself.
        own = next((step.measured for step in self.state.steps if step.items == culprits), None)
        notes: tuple[str, ...] = ()
        if unresolved := looking.unresolved:
            listed = "; ".join(", ".join(names[place] for place in subset) for subset in unresolved)
            notes = (
                _("The culprits may be fewer: not judged were {subsets}.", subsets=setting_words(listed)),
            )
        return self._result(
            reference,
            BisectionFinding.FOUND,
            tuple(names[place] for place in culprits),
            own or reference,
            notes,
        )

    def _step(self, items: Items, good: Items, change: float, error: float, about: str) -> BisectionStep:
        number = len(self.state.steps) + 1
        began = time.monotonic()
        name = ", ".join(self.subjects.names[place] for place in items)
        preparation, measured, reason = 0.0, None, ""
        failed_trials, failed_seconds = 0, 0.0
        answer: ChangeSide | None = ChangeSide.SKIPPED
        try:
            yardstick, subject = self.subjects.prepare(good), self._prepared(items)
            preparation = time.monotonic() - began
            self.display.note(f"step {number} ({about}): {name}")
            measured = self._measured(
                f"{number:02d}-{label_of(subject.name)}",
                yardstick,
                subject,
                lambda pairs: side_of(pairs, change, error) is not None,
            )
            answer = side_of(measured.pairs, change, error)
            if answer is None:
                reason = _("undecided after {pairs} pairs", pairs=len(measured.pairs))
        except SkippedError as skipped:
            preparation = preparation or time.monotonic() - began
            reason = skipped.reason
            failed_trials, failed_seconds = skipped.trials, skipped.seconds
        side = answer or ChangeSide.SKIPPED
        # A skipped item takes no half, and so spends nothing of the error.
        spent = 0.0 if side is ChangeSide.SKIPPED else error
        step = BisectionStep(
            items, name, side, spent, preparation, measured, reason, failed_trials, failed_seconds
        )
        self._keep(steps=(*self.state.steps, step), preparation=self.state.preparation + preparation)
        figures = f", ×{_figure(measured)} after {len(measured.pairs)} pairs" if measured else ""
        self.display.note(f"{name} is {side.value}{figures}{f': {reason}' if reason else ''}")
        return step

    def _confirmation(self, previous: int, culprit: int, reference: PairedMeasurement) -> PairedMeasurement:
        if self.state.confirmation is not None:
            return self.state.confirmation
        if (previous, culprit) == (0, len(self.subjects.names) - 1):
            return reference
        first, second, seconds = self._both((previous,), (culprit,))
        self.display.note(f"confirming: {first.name} beside {second.name}")
        try:
            measured = self._measured("99-confirmation", first, second, self.rules.confirmation_decided)
        except SkippedError as error:
            raise UserError(f"{second.name} cannot be measured any more: {error}.") from error
        self._keep(confirmation=measured, preparation=self.state.preparation + seconds)
        return measured

    def _measured(
        self, run: str, first: BisectSubject, second: BisectSubject, decided: Callable[[MeasuredPairs], bool]
    ) -> PairedMeasurement:
        trials = measure_pairs(
            self.folder.runs / run, first, second, self.origin, self.rules.most, decided, self.display
        )
        pairs = throughputs_of(trials)
        self._keep(unit=unit_of(trials))
        judgement = judge(pairs, matters=self.rules.matters, error=self.rules.error)
        return PairedMeasurement(
            first=first.name,
            second=second.name,
            pairs=pairs,
            ratio=judgement.ratio,
            low=judgement.low or None,
            high=judgement.high if isfinite(judgement.high) else None,
            trials=2 * len(trials),
            seconds=seconds_of(trials),
            run=run,
        )

    def _keep(self, **changes: object) -> None:
        self.state = replace(self.state, **changes)  # type: ignore[arg-type]
        self.folder.keep(self.state)

    def _result(
        self,
        reference: PairedMeasurement,
        finding: BisectionFinding,
        culprits: tuple[str, ...] = (),
        confirmation: PairedMeasurement | None = None,
        notes: tuple[str, ...] = (),
    ) -> Bisection:
        return Bisection(
            kind=self.subjects.kind,
            subject=self.subjects.subject,
            case=self.case_name,
            unit=self.state.unit,
            names=self.subjects.names,
            matters=self.rules.matters,
            error=self.rules.error,
            finding=finding,
            reference=reference,
            steps=self.state.steps,
            culprits=culprits,
            confirmation=confirmation,
            notes=notes,
            preparation=self.state.preparation,
            command=self.folder.asked.command,
        )


def _same_direction(
    confirmation: PairedMeasurement, reference: PairedMeasurement, rules: BisectionRules
) -> bool:
    """Whether the culprit beside its predecessor changes as bad beside good does, for certain."""
    if confirmation.pairs == reference.pairs:
        return True
    verdict = judge(confirmation.pairs, matters=rules.matters, error=rules.error).verdict
    return verdict is rules.reference(reference.pairs).verdict


def _end(subject: BisectSubject, side: str) -> str:
    name = side_name(subject)
    return name if name != subject.name else f"{name} ({side})"


def _figure(measured: PairedMeasurement) -> str:
    bounds = ["…" if bound is None else f"{bound:.3f}" for bound in (measured.low, measured.high)]
    return f"{measured.ratio:.3f} [{', '.join(bounds)}]"


def choose_case(suite: Suite, name: str | None) -> int:
    """Return the place of the one case that is bisected; UserError where the suite leaves a choice."""
    device = this_machine().machine.device
    places = [place for place, case in enumerate(suite.cases) if case.when in (None, device)]
    if not places:
        raise UserError("all cases of the suite are for another kind of machine.")
    slugs = ", ".join(suite.cases[place].slug for place in places)
    if name is not None:
        exact = [place for place in places if suite.cases[place].slug == name]
        places = exact or [place for place in places if name in suite.cases[place].slug]
    if not places:
        raise UserError(f"the suite has no case '{name}' here; it has {slugs}.")
    if len(places) > 1:
        raise UserError(f"a bisection is of one case; choose it with --case, one of {slugs}.")
    case = suite.cases[places[0]]
    if case.topology.nodes > 1:
        raise UserError(
            f"{case.slug} needs {case.topology.nodes} nodes, and a bisection measures on this machine only; "
            "choose a case of one node (--case, or --set topology=1n1g)."
        )
    return places[0]


def case_of(asked: BisectRequest, overrides: Sequence[load.Override] = ()) -> Case:
    """Return the case with some settings changed; SuiteError where the suite refuses them."""
    cases = load.parse(asked.text, "suite.yaml", overrides, folder=asked.folder).cases
    if overrides:
        usual = load.parse(asked.text, "suite.yaml", folder=asked.folder).cases
        if len(cases) != len(usual):
            sources = ", ".join(override.option for override in overrides)
            raise SuiteError(
                f"{sources}: the suite then has {len(cases)} of its {len(usual)} cases; a setting that is "
                "bisected may not add or remove one (fix the others with --set first)."
            )
    case = cases[asked.case]
    return replace(case, environment=(*case.environment, *asked.common))


def check_settings(asked: BisectRequest) -> None:
    """Refuse settings that the suite does not take, on either side."""
    subjects = SettingSubjects(lambda overrides: case_of(asked, overrides), asked.differences)
    for items in ((), tuple(range(len(subjects.names)))):
        case_of(asked, subjects.overrides(items))


def subjects_of(folder: BisectionFolder, asked: BisectRequest) -> BisectSubjects:
    case = case_of(asked)
    if asked.kind == SettingSubjects.kind:
        return SettingSubjects(lambda overrides: case_of(asked, overrides), asked.differences)
    if asked.kind == CommitSubjects.kind:
        history = CommitHistory(asked.repository, asked.prefix, asked.names)
        return CommitSubjects(case, history, folder.subjects, asked.setup)
    requirement = parse_requirement(asked.good)
    if requirement is None:
        raise UserError(f"{folder.path} is damaged: '{asked.good}' names no version.")
    return PackageSubjects(case, requirement, asked.names, folder.subjects, asked.python, asked.beside)


def bisect_on(path: Path, display: RunDisplay) -> Bisection:
    """Carry a bisection out, from wherever it stands."""
    folder = BisectionFolder(path)
    asked = folder.asked
    with folder.locked():
        rules = BisectionRules(asked.matters, asked.error, asked.most)
        subjects = subjects_of(folder, asked)
        name = case_of(asked).slug
        driver = BisectDriver(folder, subjects, rules, name, asked.folder, display, folder.state)
        return driver.bisect()
