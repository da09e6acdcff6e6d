"""From what was asked to a bisection under way, a new one or one that was cut short."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from trainmark.base.errors import UserError
from trainmark.measure.bisection import Bisection, BisectionRules
from trainmark.runner.bisect.commits import Commits, History
from trainmark.runner.bisect.driver import Driver
from trainmark.runner.bisect.packages import Packages, parse_requirement
from trainmark.runner.bisect.settings import Settings
from trainmark.runner.bisect.state import Asked, BisectionFolder
from trainmark.runner.bisect.subject import Subjects
from trainmark.runner.preflight.this_machine import this_machine
from trainmark.runner.trial.display import Display
from trainmark.suite import load
from trainmark.suite.model import Case, Suite, SuiteError


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


def case_of(asked: Asked, overrides: Sequence[load.Override] = ()) -> Case:
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


def check_settings(asked: Asked) -> None:
    """Refuse settings that the suite does not take, on either side."""
    subjects = Settings(lambda overrides: case_of(asked, overrides), asked.differences)
    for items in ((), tuple(range(len(subjects.names)))):
        case_of(asked, subjects.overrides(items))


def subjects_of(folder: BisectionFolder, asked: Asked) -> Subjects:
    case = case_of(asked)
    if asked.kind == Settings.kind:
        return Settings(lambda overrides: case_of(asked, overrides), asked.differences)
    if asked.kind == Commits.kind:
        history = History(asked.repository, asked.prefix, asked.names)
        return Commits(case, history, folder.subjects, asked.setup)
    requirement = parse_requirement(asked.good)
    if requirement is None:
        raise UserError(f"{folder.path} is damaged: '{asked.good}' names no version.")
    return Packages(case, requirement, asked.names, folder.subjects, asked.python, asked.beside)


def carry_on(path: Path, display: Display) -> Bisection:
    """Carry a bisection out, from wherever it stands."""
    folder = BisectionFolder(path)
    asked = folder.asked
    with folder.locked():
        rules = BisectionRules(asked.matters, asked.error, asked.most)
        subjects = subjects_of(folder, asked)
        name = case_of(asked).slug
        driver = Driver(folder, subjects, rules, name, asked.folder, display, folder.state)
        return driver.bisect()
