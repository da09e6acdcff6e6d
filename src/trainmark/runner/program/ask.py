"""Asks a workload, in one short process, what its framework is and which command lines it can carry out."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainmark.machine.child_process import run
from trainmark.runner.program.code import keep_code
from trainmark.runner.program.interpreter import Interpreter
from trainmark.workloads.registry import Family

SECONDS = 180.0


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


class Listening:
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
    interpreter: Interpreter,
    family: Family,
    framework: str,
    questions: Sequence[Question],
    limit: float = SECONDS,
) -> Answers:
    """One process answers all; what it prints besides is dropped, and what it started ends with it."""
    heard = Listening()
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
