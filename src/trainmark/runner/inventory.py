"""What this machine has to run with: its devices, and its frameworks, asked what they can carry out."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from trainmark.machine.child_process import run
from trainmark.machine.devices import local_devices
from trainmark.machine.frameworks import installed, locks
from trainmark.machine.frameworks.installed import State
from trainmark.machine.frameworks.interpreters import imported_version, version_of
from trainmark.machine.frameworks.locks import lock_of
from trainmark.machine.host import read_host
from trainmark.runner.command import RankInterpreter, keep_code
from trainmark.suite.fields import PRECISIONS
from trainmark.suite.plan import Resources
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

    def answers(self, count: int) -> Answers | None:
        """Return the answers to so many questions; None where one is missing."""
        if self.facts is None or len(self.refusals) != count:
            return None
        return Answers(self.facts, tuple(self.refusals))


def as_lines(questions: Sequence[Question]) -> str:
    return "".join(f"{json.dumps(vars(question))}\n" for question in questions)


def ask(
    interpreter: RankInterpreter,
    family: Family,
    framework: str,
    questions: Sequence[Question],
    limit: float = ANSWER_SECONDS,
) -> Answers:
    """One process answers all; what it prints besides is dropped, and what it started ends with it."""
    heard = AnswerReader()
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
                given=as_lines(questions),
                environment={**os.environ, "PYTHONPATH": path},
            )
        except OSError as error:
            return Answers(silent=f"{interpreter} does not start: {error.strerror}")
    if ended.code == 0 and (answers := heard.answers(len(questions))):
        return answers
    if ended.code is None:
        return Answers(silent=f"it did not answer within {limit:.0f} s")
    return Answers(silent=ended.last_line if ended.code > 0 else ended.how)


@dataclass(frozen=True)
class ThisMachine:
    """`device` names it in results; `gpus` count its GPUs as the driver does."""

    machine: Resources
    device: str
    gpus: tuple[int, ...]


def this_machine() -> ThisMachine:
    here = local_devices()
    cores = max(1, int(here.cpu_cores))
    return ThisMachine(
        machine=Resources(here.kind, len(here.cuda) or cores, cores=cores),
        device=here.cuda[0].name if here.cuda else read_host().cpu.model or "cpu",
        gpus=tuple(device.index for device in here.cuda),
    )


DEVICES = ("cuda", "cpu")
OWN_INTERPRETER = "own"  # not an environment of ours, but an interpreter that has the framework


@dataclass(frozen=True)
class FrameworkStatus:
    """One row: what is None is not known, because the framework is not there or has not answered."""

    framework: str
    state: str
    installed: bool
    version: str | None = None
    python: str | None = None
    interpreter: str | None = None
    device: str | None = None
    precisions: tuple[str, ...] | None = None
    reason: str | None = None
    fix: str | None = None


def framework_names() -> list[str]:
    programs = (family.frameworks for family in registry.families().values())
    return sorted({*locks.names()}.union(*programs))


def framework_statuses(python: str | None, began: Callable[[str], None]) -> list[FrameworkStatus]:
    """All of them, in the order of their names; of the interpreter `python` where one is given."""
    rows = []
    for name in framework_names():
        began(name)
        rows.append(framework_status(name, python))
    return rows


def framework_status(name: str, python: str | None = None) -> FrameworkStatus:
    if python is not None:
        return _asked(name, python, OWN_INTERPRETER, None)
    environment = installed.find(name)
    if environment is None and _in_our_own(name):
        return _asked(name, sys.executable, OWN_INTERPRETER, None)
    state, reason = installed.standing(name)
    if environment is None or state is State.BROKEN:
        return _not_there(name, state, reason)
    return _asked(name, str(environment.python), state.value, reason)


def _asked(name: str, python: str, state: str, reason: str | None) -> FrameworkStatus:
    family = _family(name)
    answers = _ask(family, name, python)
    if answers.silent is None:
        device, precisions = _offered(family, answers.refusals)
        return FrameworkStatus(
            framework=name,
            state=state,
            installed=True,
            version=answers.facts.get("framework_version"),
            python=version_of(python),
            interpreter=python,
            device=device,
            precisions=precisions,
            reason=reason,
            fix=installed.fix_of(name, State(state), reason) if state != OWN_INTERPRETER else None,
        )
    if state == OWN_INTERPRETER and "ModuleNotFoundError" in answers.silent:
        return _not_there(name, State.ABSENT, f"{python} has no {name}")
    if state == OWN_INTERPRETER:
        fix = installed.fix_of(name, State.ABSENT, None)
        return FrameworkStatus(
            name, State.BROKEN.value, False, interpreter=python, reason=answers.silent, fix=fix
        )
    return _not_there(name, State.BROKEN, answers.silent)


def _family(framework: str) -> Family | None:
    """The default workload, or the first other one that this framework has a program for."""
    known = registry.families()
    families = (known[registry.DEFAULT], *known.values())
    return next((family for family in families if framework in family.frameworks), None)


def _ask(family: Family | None, name: str, python: str) -> Answers:
    if family is not None:
        return ask(RankInterpreter(python), family, name, [Question(words) for _, _, words in _cases(family)])
    # Without a workload there is nothing to ask but the version.
    version, reason = imported_version(python, _module(name))
    return Answers({"framework_version": version}, (), reason)


def _cases(family: Family) -> list[tuple[str, str, tuple[str, ...]]]:
    """Device, precision and command line of each; a framework may offer a precision in one layout only."""
    layouts: list[tuple[str, ...]] = [("--layout", each) for each in family.workload.layouts]
    return [
        (device, precision, ("--device", device, "--precision", precision, *layout))
        for device, precision, layout in product(DEVICES, PRECISIONS, layouts or [()])
    ]


def _offered(
    family: Family | None, refusals: Sequence[str | None]
) -> tuple[str | None, tuple[str, ...] | None]:
    """The first device that takes anything, and the precisions that it takes."""
    asked = _cases(family) if family else []
    taken = [case for case, refusal in zip(asked, refusals, strict=False) if refusal is None]
    for device in DEVICES:
        if offered := [precision for at, precision, _ in taken if at == device]:
            return device, tuple(dict.fromkeys(offered))
    return None, () if refusals else None


def _not_there(name: str, state: State, reason: str | None) -> FrameworkStatus:
    fix = installed.fix_of(name, state, reason)
    return FrameworkStatus(name, state.value, False, reason=reason, fix=fix)


def interpreter_of(name: str) -> str | None:
    """The one that a run would use; None where no interpreter has the framework."""
    return installed.python_of(name) or (sys.executable if _in_our_own(name) else None)


def _in_our_own(name: str) -> bool:
    """Looks for it and does not import it."""
    try:
        return importlib.util.find_spec(_module(name)) is not None
    except (ImportError, ValueError):
        return False


def _module(name: str) -> str:
    lock = lock_of(name)
    return lock.imported if lock else name
