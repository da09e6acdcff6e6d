"""Lets a framework train from given weights, on one rank and on two, and holds it to the reference."""

from __future__ import annotations

import datetime
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from trainmark.conform.verdict import Check, Verdict, code_digest, compared
from trainmark.errors import UserError
from trainmark.launch.job import Job
from trainmark.launch.local import LocalLauncher
from trainmark.launch.log_tail import tail
from trainmark.launch.outcome import Cause, Outcome, judge
from trainmark.launch.watch import Limits, watch
from trainmark.runner.ask import Question, ask
from trainmark.runner.code import keep_code
from trainmark.runner.interpreter import Interpreter
from trainmark.suite.workloads import module
from trainmark.workloads.resnet50.shared import conformance

WORKLOAD = "resnet50"
LAYOUTS = ("NCHW", "NHWC")
# A framework may compile for minutes and print nothing meanwhile.
LIMITS = Limits(trial=900.0, silence=600.0)

Told = Callable[[str], None]


def conform(
    framework: str, python: str, device: str, told: Told, stop_asked: Callable[[], bool], devices: int = 2
) -> Verdict:
    """Every layout that the framework offers on one rank, the first of them also on two."""
    asked = [(ranks, layout) for layout in LAYOUTS for ranks in (1, 2) if ranks <= devices]
    questions = [Question(_arguments(layout, device), ranks) for ranks, layout in asked]
    answers = ask(Interpreter(python), module(WORKLOAD, framework), questions)
    if answers.silent is not None:
        checks: list[Check] = [Check(1, LAYOUTS[0], failed=f"it does not start: {answers.silent}")]
    else:
        checks = []
        for (ranks, layout), refusal in zip(asked, answers.refusals, strict=True):
            if refusal is not None:
                checks.append(Check(ranks, layout, refused=refusal))
            elif ranks == 1 or not any(check.ranks == ranks and check.passed for check in checks):
                told(f"{framework}: {ranks} rank{'s' if ranks > 1 else ''}, {layout}")
                command = program(framework, python, layout, device)
                checks.append(checked(command, ranks, layout, stop_asked))
    return Verdict(
        framework=framework,
        version=answers.facts.get("framework_version"),
        python=python,
        device=device,
        code=code_digest(framework),
        checked=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        checks=tuple(checks),
    )


def program(framework: str, python: str, layout: str, device: str) -> tuple[str, ...]:
    return (python, "-u", "-m", module(WORKLOAD, framework), *_arguments(layout, device))


def _arguments(layout: str, device: str) -> tuple[str, ...]:
    return (
        *("--device", device, "--precision", "fp32", "--layout", layout),
        *("--batch", str(conformance.BATCH), "--image-size", str(conformance.IMAGE_SIZE)),
        *("--steps", str(conformance.STEPS), "--training-images", str(conformance.TRAINING_IMAGES)),
    )


def checked(
    command: tuple[str, ...],
    ranks: int,
    layout: str,
    stop_asked: Callable[[], bool],
    code: Path | None = None,
) -> Check:
    """One training; `code` is a folder with the workloads, a copy of ours where none is given."""
    with tempfile.TemporaryDirectory(prefix="trainmark-") as made:
        folder = Path(made)
        if code is None:
            code = folder / "code"
            keep_code(code)
        shown = [folder / f"shown{rank}.json" for rank in range(ranks)]
        job = Job(
            command=(*command, "--conform", str(folder / "shown{rank}.json")),
            environment=_environment(code),
            working_folder=folder,
            folder=folder,
            nodes=1,
            ranks_per_node=ranks,
        )
        ending = watch(LocalLauncher().start(job), job, LIMITS, stop_asked, lambda: None)
        if ending.cause is Cause.STOPPED:
            raise UserError("stopped; what was checked before is kept.")
        judgement = judge(ending, {rank: tail(job.log(rank)) for rank in range(ranks)})
        if judgement.outcome is not Outcome.OK:
            return Check(ranks, layout, failed=judgement.detail)
        try:
            return compared(ranks, layout, [json.loads(file.read_bytes()) for file in shown])
        except (OSError, ValueError, KeyError) as error:
            return Check(ranks, layout, failed=f"a rank left nothing that can be compared: {error}")


def _environment(code: Path) -> dict[str, str]:
    path = [str(code), os.environ.get("PYTHONPATH")]
    return {
        "PYTHONPATH": os.pathsep.join(filter(None, path)),
        "PYTHONUNBUFFERED": "1",
        # Enough for a few small steps; where others use the machine too, threads that wait are slower.
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
    }
