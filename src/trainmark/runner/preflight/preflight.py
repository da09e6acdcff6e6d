"""Asked before anything starts: does the framework start here, and can it do what the cases want?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from trainmark.machine.frameworks import install_hint, python_of
from trainmark.runner.program.ask import Answers, Question, ask
from trainmark.runner.program.command import arguments, interpreter
from trainmark.runner.program.interpreter import Interpreter
from trainmark.suite.model import Case, Command
from trainmark.suite.plan import Plan, SkippedCase, fastest_choices
from trainmark.workloads import registry
from trainmark.workloads.registry import Family


@dataclass(frozen=True)
class Preflight:
    """The plan without what was refused, and what each framework says of itself by case."""

    plan: Plan
    facts: dict[str, dict[str, Any]] = field(default_factory=dict)


Ask = Callable[[Interpreter, Family, str, Sequence[Question]], Answers]


def preflight(plan: Plan, ask: Ask = ask) -> Preflight:
    """One process per interpreter and framework answers for all of its cases, in every way they allow."""
    groups: dict[tuple[Interpreter, str, str], list[Case]] = {}
    for case in plan.cases:
        if not isinstance(case.workload, Command):
            key = (interpreter(case), case.workload, str(case.framework))
            groups.setdefault(key, []).append(case)
    facts: dict[str, dict[str, Any]] = {}
    settled: dict[Case, Case | SkippedCase] = {}
    for (python, workload, framework), cases in groups.items():
        asked = [fastest_choices(case) for case in cases]
        known, reasons = _ask(
            ask, python, registry.find(workload), framework, [choice for each in asked for choice in each]
        )
        answers = iter(reasons)
        for case, each in zip(cases, asked, strict=True):
            chosen = settled[case] = _settle(case, each, [next(answers) for _ in each])
            facts[(chosen.case if isinstance(chosen, SkippedCase) else chosen).slug] = known
    outcomes = [settled.get(case, case) for case in plan.cases]
    by_slug: dict[str, Case] = {}
    for outcome in outcomes:
        if isinstance(outcome, Case):
            # What was left open may turn out to be what another case names.
            by_slug.setdefault(outcome.slug, outcome)
    skips = tuple(outcome for outcome in outcomes if isinstance(outcome, SkippedCase))
    return Preflight(replace(plan, cases=tuple(by_slug.values()), skipped=(*plan.skipped, *skips)), facts)


def _settle(case: Case, asked: Sequence[Case], refusals: Sequence[str | None]) -> Case | SkippedCase:
    """The first choice that was not refused, or why the plainest were."""
    reasons: dict[str, None] = {}
    for choice, refusal in zip(asked, refusals, strict=True):
        if refusal is None:
            return choice
        if (choice.compile, choice.cuda_graph) == (asked[-1].compile, asked[-1].cuda_graph):
            reasons[refusal] = None
    return SkippedCase(case, " ".join(reasons))


def _ask(
    ask: Ask, python: Interpreter, family: Family, framework: str, cases: list[Case]
) -> tuple[dict[str, Any], Sequence[str | None]]:
    questions = [Question(arguments(case), case.topology.devices) for case in cases]
    answers = ask(python, family, framework, questions)
    if answers.silent is None:
        return answers.facts, answers.refusals
    return {}, [_why_not(python, framework, answers.silent)] * len(cases)


def _why_not(python: Interpreter, framework: str, silent: str) -> str:
    if "does not start" in silent:
        return silent
    if python.python == python_of(framework):
        return (
            f"{framework} does not start in its environment ({silent}); "
            f"`trainmark frameworks install {framework} --force` makes it anew"
        )
    if "ModuleNotFoundError" in silent:
        return f"{framework} is not installed for {python} ({silent}); {install_hint(framework)}"
    return f"{framework} does not start with {python}: {silent}"
