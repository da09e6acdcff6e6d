"""From what was asked to a bisection under way, a new one or one that was cut short."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from trainmark.errors import UserError
from trainmark.runner.bisect.commits import Commits, History
from trainmark.runner.bisect.driver import Driver
from trainmark.runner.bisect.packages import Packages, parse_requirement
from trainmark.runner.bisect.settings import Settings
from trainmark.runner.bisect.state import Asked, BisectionFolder
from trainmark.runner.bisect.subject import Subjects
from trainmark.runner.preflight.this_machine import this_machine
from trainmark.runner.trial.display import Display
from trainmark.sequential.bisection import Bisection
from trainmark.sequential.rules import Rules
from trainmark.suite import load
from trainmark.suite.errors import SuiteError
from trainmark.suite.model import Case, Suite


def choose_case(suite: Suite, name: str | None) -> int:
    """Return the place of the one case that is bisected; UserError where the suite leaves a choice."""
    device = this_machine().machine.device
    places = [place for place, case in enumerate(suite.cases) if case.when in (None, device)]
    if name is not None:
        places = [place for place in places if suite.cases[place].slug == name]
    if len(places) == 1:
        return places[0]
    slugs = ", ".join(case.slug for case in suite.cases if case.when in (None, device))
    if not places:
        raise UserError(f"the suite has no case '{name}' here; it has {slugs or 'none'}.")
    raise UserError(f"a bisection is of one case; name it with --case, one of {slugs}.")


def case_of(asked: Asked, overrides: Sequence[load.Override] = ()) -> Case:
    """Return the case with some settings changed; SuiteError where the suite refuses them."""
    suite = load.parse(asked.text, "suite.yaml", overrides, folder=asked.folder)
    if asked.case >= len(suite.cases):
        raise SuiteError("with this setting the suite has fewer cases")
    case = suite.cases[asked.case]
    return replace(case, environment=(*case.environment, *asked.common))


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
        rules = Rules(asked.matters, asked.error, asked.most)
        subjects = subjects_of(folder, asked)
        name = case_of(asked).slug
        driver = Driver(folder, subjects, rules, name, asked.folder, display, folder.state)
        return driver.bisect()
