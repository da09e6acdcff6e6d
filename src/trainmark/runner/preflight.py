"""Asked before anything starts: does the framework start here, and can it do what the cases want?"""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass, field
from typing import Any

from trainmark.runner.code import PACKAGE
from trainmark.runner.command import arguments, interpreter
from trainmark.suite.model import Case, Command
from trainmark.suite.plan import Plan, Skip
from trainmark.suite.workloads import module

SECONDS = 180.0


@dataclass(frozen=True)
class Preflight:
    """The plan without what was refused, and what each framework says of itself by case."""

    plan: Plan
    facts: dict[str, dict[str, Any]] = field(default_factory=dict)


def preflight(plan: Plan) -> Preflight:
    """One process per interpreter and framework answers for all of its cases."""
    groups: dict[tuple[str, str], list[Case]] = {}
    for case in plan.cases:
        if not isinstance(case.workload, Command):
            key = (interpreter(case), module(case.workload, str(case.framework)))
            groups.setdefault(key, []).append(case)
    facts: dict[str, dict[str, Any]] = {}
    refused: dict[str, str] = {}
    for (python, program), cases in groups.items():
        known, reasons = _ask(python, program, cases)
        for case, reason in zip(cases, reasons, strict=True):
            facts[case.slug] = known
            if reason is not None:
                refused[case.slug] = reason
    kept = tuple(case for case in plan.cases if case.slug not in refused)
    skips = tuple(Skip(case, refused[case.slug]) for case in plan.cases if case.slug in refused)
    return Preflight(Plan(kept, (*plan.skipped, *skips), plan.seed), facts)


def _ask(python: str, program: str, cases: list[Case]) -> tuple[dict[str, Any], list[str | None]]:
    questions = "".join(
        json.dumps({"arguments": list(arguments(case)), "world_size": case.topology.devices}) + "\n"
        for case in cases
    )
    path = os.pathsep.join(filter(None, [str(PACKAGE.parent), os.environ.get("PYTHONPATH")]))
    try:
        asked = subprocess.run(
            [python, "-m", program, "--check"],
            input=questions,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SECONDS,
            env={**os.environ, "PYTHONPATH": path},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return {}, [f"{python} does not start: {error}"] * len(cases)
    answers = [line for line in asked.stdout.splitlines() if line[:1] in ("{", '"', "n")]
    if asked.returncode != 0 or len(answers) != len(cases) + 1:
        return {}, [_why_not(python, program, asked.stderr)] * len(cases)
    return json.loads(answers[0]), [json.loads(answer) for answer in answers[1:]]


def _why_not(python: str, program: str, errors: str) -> str:
    framework = program.rpartition(".")[2]
    last = next((line.strip() for line in reversed(errors.splitlines()) if line.strip()), "no message")
    if "ModuleNotFoundError" in last:
        return f"{framework} is not installed for {python} ({last}); pip install 'trainmark[{framework}]'"
    return f"{framework} does not start with {python}: {last}"
