"""From a case to the command, environment and job of its ranks, and to the key its result goes by."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from trainmark.base.errors import nearest
from trainmark.inside.hooks.stop_rule import STOP, WARMUP
from trainmark.launch.job import Job, Launcher
from trainmark.launch.outcome import JobEnd, JobOutcome, outcome_of, tail
from trainmark.launch.watch import TrialLimits, watch
from trainmark.machine.frameworks.installed import python_of
from trainmark.measure.key import Key
from trainmark.runner import program as ways_in
from trainmark.runner.program import RankInterpreter
from trainmark.suite.model import ALL_STEPS, Case, Command, SuiteError
from trainmark.workloads import registry


def key_of(case: Case, device: str, facts: Mapping[str, Any]) -> Key:
    engine = case.engine if case.engine != "stock" else None
    captured = case.cuda_graph is True
    untouched = isinstance(case.workload, Command) and case.workload.untouched
    engines = engine, case.compiler, "cuda-graph" if captured else None
    return Key(
        workload=case.workload_name,
        framework=case.framework,
        framework_version=facts.get("framework_version"),
        variant=case.variant,
        axes=case.axes,
        precision=case.precision,
        loss_scale=case.loss_scale,
        layout=case.layout,
        compiler="+".join(filter(None, engines)) or None,
        data=case.data,
        batch_per_device=case.batch_per_device,
        nodes=case.topology.nodes,
        devices_per_node=case.topology.devices_per_node,
        device=device,
        threads=case.threads or (None if untouched else case.fair_threads),
        recipe=Path(case.recipe).stem if case.recipe else None,
        loader=case.loader,
        dataset=Path(case.dataset).name if case.dataset else None,
        target=case.course.target if case.course else None,
    )


PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
# Where the hooks lie in a run's code; the second is how runs before 0.2 have it.
HOOKS = ("trainmark/inside/hooks/injected", "trainmark/hooks/injected")
# Where a rank writes its profile, and how many steps of it; see `inside.profiler.capture`.
PROFILE, PROFILE_STEPS = "TRAINMARK_PROFILE", "TRAINMARK_PROFILE_STEPS"
PROFILE_FOLDER = "profile"
FROM_CASE = ("precision", "loss_scale", "layout", "data", "batch_per_device", "device")


def interpreter(case: Case) -> RankInterpreter:
    """The one that the suite names, else the environment of the framework, else Trainmark's own."""
    if case.container:
        return RankInterpreter(case.python or "python3", case.container, gpus=case.device == "cuda")
    return RankInterpreter(named_interpreter(case) or sys.executable)


def named_interpreter(case: Case) -> str | None:
    """Of this machine; None leaves Trainmark's own, or one inside an image."""
    if case.container:
        return None
    return case.python or (python_of(case.framework) if case.framework else None)


def command_of(case: Case, code: Path, folder: Path, seed: int = 0) -> tuple[str, ...]:
    if isinstance(case.workload, Command):
        return ("sh", "-c", line_of(case.workload, case))
    program = ("-u", "-m", case.family.module(str(case.framework)))
    words = (*program, *workload_arguments(case), *course_arguments(case, seed, checkpoints_of(case, folder)))
    return interpreter(case).command(words, code, folder, [name for name, _ in case.environment])


def workload_arguments(case: Case) -> tuple[str, ...]:
    """The command line that all built-in workloads share."""
    words = {
        "--device": case.device,
        "--batch": str(case.batch_per_device),
        "--precision": case.precision,
        "--loss-scale": case.loss_scale,
        "--layout": case.layout,
        "--engine": case.engine if case.engine != "stock" else None,
        "--compile": "default" if case.compile is True else case.compiler,
        "--data": case.data,
        **{case.family.workload.axis(name).option: value for name, value in case.axes},
        "--recipe": case.recipe,
        "--dataset": case.dataset,
        "--loader": case.loader,
        "--on-bad": case.on_bad,
        "--workers": case.workers and str(case.workers),
        "--steps": None if case.course else str(case.rules.steps),
        "--epochs": case.course and case.course.epochs and str(case.course.epochs),
    }
    lines = [("--until", f"{name}={share:g}") for name, share in (case.course.until if case.course else ())]
    given = [pair for pair in (*words.items(), *lines) if pair[1] is not None]
    return (*(str(word) for pair in given for word in pair), *(["--cuda-graph"] if case.cuda_graph else []))


def course_arguments(case: Case, seed: int, checkpoints: Path) -> tuple[str, ...]:
    """Of a training by epochs: every repeat has a seed of its own, and a place to go on from."""
    if case.course is None:
        return ()
    every, count = case.course.checkpoint_steps, case.course.checkpoints_kept
    return (
        *("--seed", str(seed)),
        *("--checkpoints", str(checkpoints)),
        *("--checkpoint-steps", str(every)),
        *("--checkpoints-kept", str(count)),
    )


def line_of(command: Command, case: Case) -> str:
    """Return the shell's line; an untouched program's is as it was typed."""
    return command.line if command.untouched else filled_in(command.line, case)


def filled_in(line: str, case: Case) -> str:
    """`{batch_per_device}` and the like, from the case; other braces are the shell's."""
    known: dict[str, Any] = {"python": str(interpreter(case)), "steps": case.rules.steps}
    known |= (
        {name: getattr(case, name) for name in FROM_CASE} | dict.fromkeys(registry.axes()) | dict(case.axes)
    )

    def fill(match: re.Match[str]) -> str:
        name = match[1]
        if name not in known:
            raise SuiteError(f"the command has no value for '{{{name}}}'{nearest(name, known)}")
        if known[name] is None:
            raise SuiteError(f"the command asks for '{{{name}}}'; give the suite a value for '{name}'.")
        return str(known[name])

    return PLACEHOLDER.sub(fill, line)


def checkpoints_of(case: Case, folder: Path) -> Path:
    """Where a training by epochs keeps what it can go on from: with its trial, or where the suite says."""
    root = case.course and case.course.checkpoint_folder
    if not root:
        return folder / "checkpoints"
    run, slug, repeat = folder.parts[-4], folder.parts[-2], folder.name.strip(".").removesuffix(".part")
    return Path(root) / run / slug / repeat


def job_of(case: Case, folder: Path, code: Path, suite_folder: str | None, seed: int = 0) -> Job:
    environment = dict(case.environment)
    program = case.workload if isinstance(case.workload, Command) else None
    untouched = program is not None and program.untouched
    hooks = next((code / place for place in HOOKS if (code / place).is_dir()), code / HOOKS[0])
    path = [str(hooks)] if untouched else []
    inherited = [os.environ["PYTHONPATH"]] if os.environ.get("PYTHONPATH") else []
    environment["PYTHONPATH"] = os.pathsep.join([*path, str(code), *inherited])
    environment["PYTHONUNBUFFERED"] = "1"
    if program is not None and untouched:
        environment.update(stop_variables(program.steps, case.rules.warmup_steps))
    elif threads := case.threads or case.fair_threads:
        environment.setdefault("OMP_NUM_THREADS", str(threads))
    users_own = program is not None and suite_folder
    return Job(
        command=command_of(case, code, folder, seed),
        environment=environment,
        working_folder=Path(suite_folder) if users_own and suite_folder else folder,
        folder=folder,
        nodes=case.topology.nodes,
        ranks_per_node=case.topology.devices_per_node,
        gpus=case.device == "cuda",
        starts_own_ranks=untouched,
        programs=hooks / ways_in.FOLDER.name if untouched else None,
    )


def stop_variables(steps: int | str, warmup_steps: int) -> dict[str, str]:
    """Return what tells the hooks when to end the program; nothing where it runs to its own end."""
    if steps == ALL_STEPS:
        return {}
    limit = str(steps) if isinstance(steps, str) else str(warmup_steps + steps)
    return {STOP: limit, WARMUP: str(warmup_steps)}


def profiled(job: Job, steps: int) -> Job:
    """The same job, whose ranks take so many steps under a profiler after the measured ones."""
    variables = {PROFILE: str(job.folder / PROFILE_FOLDER), PROFILE_STEPS: str(steps)}
    return replace(job, environment={**job.environment, **variables})


# Ports are free when they are chosen; another program may bind one before the ranks do.
RETRIES = 2


def run_job(
    job_in: Callable[[Path], Job],
    folder: Path,
    launcher: Launcher,
    limits: TrialLimits,
    stop_asked: Callable[[], bool],
) -> tuple[Job, JobEnd, JobOutcome]:
    """Return the last attempt; `job_in` makes the job of each in a new folder within `folder`."""
    for attempt in range(1 + RETRIES):
        own = folder / f"attempt{attempt}"
        own.mkdir()
        job = job_in(own)
        ending = watch(launcher.start(job), job, limits, stop_asked, lambda: None)
        judgement = outcome_of(ending, {rank: tail(job.log(rank)) for rank in range(job.world_size)})
        if not judgement.transient:
            break
    return job, ending, judgement
