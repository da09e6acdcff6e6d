"""Asked before anything starts: does the framework start here, and which of the cases can it carry out?"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from trainmark.machine.child_process import run
from trainmark.machine.frameworks.installed import install_hint, python_of
from trainmark.runner.command import interpreter, workload_arguments
from trainmark.runner.program import RankInterpreter, keep_code
from trainmark.suite.model import Case, Command
from trainmark.suite.plan import Plan, SkippedCase, fastest_choices
from trainmark.workloads import registry
from trainmark.workloads.registry import Family

ANSWER_SECONDS = 180.0


@dataclass(frozen=True)
class Question:
    arguments: tuple[str, ...]
    world_size: int = 1


@dataclass(frozen=True)
class Answers:
    """`refusals` has None or a reason for each question; `silent` says why there are no answers at all."""

    facts: dict[str, Any] = field(default_factory=dict)
    refusals: tuple[str | None, ...] = ()
    silent: str | None = None


class AnswerReader:
    """Picks the answers out of whatever else a framework prints."""

    def __init__(self) -> None:
        self.facts: dict[str, Any] | None = None
        self.refusals: list[str | None] = []

    def line(self, text: str) -> None:
        if text[:1] not in ("{", '"', "n"):
            return
        try:
            answer = json.loads(text)
        except ValueError:
            return
        if self.facts is None and isinstance(answer, dict):
            self.facts = answer
        elif self.facts is not None and (answer is None or isinstance(answer, str)):
            self.refusals.append(answer)


def ask(
    interpreter: RankInterpreter,
    family: Family,
    framework: str,
    questions: Sequence[Question],
    limit: float = ANSWER_SECONDS,
) -> Answers:
    """One process answers all; what it prints besides is dropped, and what it started ends with it."""
    heard = AnswerReader()
    given = [{"arguments": list(q.arguments), "world_size": q.world_size} for q in questions]
    with tempfile.TemporaryDirectory(prefix="trainmark-") as folder:
        # A copy, as the ranks get it: where Trainmark is installed lie packages that are not the framework's.
        place = Path(folder)
        code = place / "code"
        keep_code(code, [family])
        path = os.pathsep.join(filter(None, [str(code), os.environ.get("PYTHONPATH")]))
        try:
            ended = run(
                interpreter.command(("-m", family.module(framework), "--check"), code, place),
                heard.line,
                limit=limit,
                given="".join(f"{json.dumps(each)}\n" for each in given),
                environment={**os.environ, "PYTHONPATH": path},
            )
        except OSError as error:
            return Answers(silent=f"{interpreter} does not start: {error.strerror}")
    if ended.code == 0 and heard.facts is not None and len(heard.refusals) == len(questions):
        return Answers(heard.facts, tuple(heard.refusals))
    if ended.code is None:
        return Answers(silent=f"it did not answer within {limit:.0f} s")
    return Answers(silent=ended.last_line if ended.code > 0 else ended.how)


@dataclass(frozen=True)
class Preflight:
    """The plan without what was refused, and what each framework says of itself by case."""

    plan: Plan
    facts: dict[str, dict[str, Any]] = field(default_factory=dict)


AskFramework = Callable[[RankInterpreter, Family, str, Sequence[Question]], Answers]


def preflight(plan: Plan, ask: AskFramework = ask) -> Preflight:
    """One process per interpreter and framework answers for all of its cases, in every way they allow."""
    groups: dict[tuple[RankInterpreter, str, str], list[Case]] = {}
    for case in plan.cases:
        if not isinstance(case.workload, Command):
            key = (interpreter(case), case.workload, str(case.framework))
            groups.setdefault(key, []).append(case)
    facts: dict[str, dict[str, Any]] = {}
    settled: dict[Case, Case | SkippedCase] = {}
    for (python, workload, framework), cases in groups.items():
        asked = [fastest_choices(case) for case in cases]
        known, reasons = _ask_framework(
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


def _ask_framework(
    ask: AskFramework, python: RankInterpreter, family: Family, framework: str, cases: list[Case]
) -> tuple[dict[str, Any], Sequence[str | None]]:
    questions = [Question(workload_arguments(case), case.topology.devices) for case in cases]
    answers = ask(python, family, framework, questions)
    if answers.silent is None:
        return answers.facts, answers.refusals
    return {}, [_why_not(python, framework, answers.silent)] * len(cases)


def _why_not(python: RankInterpreter, framework: str, silent: str) -> str:
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
