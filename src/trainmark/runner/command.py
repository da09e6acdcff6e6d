"""A case made ready: the copy of its code, the command, environment and job of its ranks, the result's key.

A run resumed next week measures what it measured today. A command that sets PYTHONPATH itself, as
`env PYTHONPATH=. python train.py` does, would start Python without our `sitecustomize`: a program that is
found before the one of the same name adds it again, leaves PATH and becomes the program that was meant.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from trainmark.base.errors import nearest
from trainmark.inside.hooks.stop_rule import STOP, WARMUP
from trainmark.launch.job import Job, Launcher
from trainmark.launch.outcome import JobEnd, JobOutcome, outcome_of, tail
from trainmark.launch.watch import TrialLimits, watch
from trainmark.machine.frameworks.installed import python_of
from trainmark.measure.key import Key
from trainmark.suite.model import ALL_STEPS, Case, Command, ContainerImage, SuiteError
from trainmark.workloads import registry
from trainmark.workloads.registry import Family

# Handed on by name: the values differ from rank to rank, and the runtime has them in its own environment.
PASSED_VARIABLES = (
    *("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "NODE_RANK", "MASTER_ADDR", "MASTER_PORT"),
    *("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "TRAINMARK_EVENTS", "TRAINMARK_PEERS"),
    *("TRAINMARK_NODE", "TRAINMARK_JOB", "TRAINMARK_PROFILE", "TRAINMARK_PROFILE_STEPS"),
    *("PYTHONPATH", "PYTHONUNBUFFERED", "OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES"),
)


@dataclass(frozen=True)
class RankInterpreter:
    """`python` is its path, or its name inside the image; `gpus` lets a container see them."""

    python: str
    container: ContainerImage | None = None
    gpus: bool = False

    def __str__(self) -> str:
        return f"{self.container.runtime} image {self.container.image}" if self.container else self.python

    def command(
        self, arguments: Sequence[str], code: Path, folder: Path, variables: Sequence[str] = ()
    ) -> tuple[str, ...]:
        """`code` and `folder` keep their paths inside; `variables` are passed on beside the usual ones."""
        program = (self.python, *arguments)
        if self.container is None:
            return program
        within = _container_words(self.container, self.gpus, code, folder, variables)
        return (*within, *self.container.options, self.container.image, *program)


# What lets a container see the GPUs.
GPU_OPTIONS = {
    "docker": ("--gpus", "all"),
    "podman": ("--device", "nvidia.com/gpu=all", "--security-opt", "label=disable"),
    "apptainer": ("--nv",),
}


def _container_words(
    container: ContainerImage, gpus: bool, code: Path, folder: Path, variables: Sequence[str]
) -> list[str]:
    """On the host's network and shared memory, as the user who measures; gone when its program is.

    Apptainer shares network, user and environment with the host by itself.
    """
    mounted = [folder] if code.is_relative_to(folder) else [code, folder]
    visible = GPU_OPTIONS[container.runtime] if gpus else ()
    if container.runtime == "apptainer":
        binds = [word for path in mounted for word in ("--bind", str(path))]
        return ["apptainer", "exec", *visible, *binds, "--pwd", str(folder)]
    return [
        *(container.runtime, "run", "--rm", "--init", "--interactive", "--network", "host", "--ipc", "host"),
        *("--user", f"{os.getuid()}:{os.getgid()}", "--env", "HOME=/tmp"),
        *visible,
        *(("--userns", "keep-id") if container.runtime == "podman" else ()),
        *(word for path in mounted for word in ("--volume", f"{path}:{path}")),
        *("--workdir", str(folder)),
        *(word for name in (*PASSED_VARIABLES, *variables) for word in ("--env", name)),
    ]


WRAPPERS = Path("trainmark/inside/hooks/injected/bin")
# What starts Python by a path of its own is found by name as well; its children have its PYTHONPATH.
WRAPPED_PROGRAMS = (
    "python",
    "python3",
    *(f"python3.{minor}" for minor in range(7, 20)),
    "torchrun",
    "accelerate",
    "deepspeed",
)
WRAPPER_SCRIPT = """\
#!/bin/sh
name=${0##*/} here=${0%/*}
injected=${here%/*}
code=${injected%/trainmark/inside/hooks/injected}
case ":$PYTHONPATH:" in
*":$injected:"*) ;;
*) [ -z "$TRAINMARK_EVENTS" ] || export PYTHONPATH="$injected:$code${PYTHONPATH:+:$PYTHONPATH}" ;;
esac
set -f
IFS=:
found= rest=
for folder in $PATH; do
  [ "$folder" = "$here" ] && continue
  rest=$rest:$folder
  [ -z "$found" ] && [ -f "${folder:-.}/$name" ] && [ -x "${folder:-.}/$name" ] && found=${folder:-.}/$name
done
export PATH="${rest#:}"
[ -n "$found" ] && exec "$found" "$@"
echo "$name: not found" >&2
exit 127
"""


def write_wrappers(code: Path) -> None:
    """Only for names that there are: who looks whether one exists is told the truth."""
    folder = code / WRAPPERS
    folder.mkdir()
    for name in filter(shutil.which, WRAPPED_PROGRAMS):
        script = folder / name
        script.write_text(WRAPPER_SCRIPT, encoding="utf-8")
        script.chmod(0o755)


PACKAGE = Path(__file__).resolve().parents[1]
# A measured program gets these on its path, and nothing else of ours.
COPIED_PARTS = ("__init__.py", "probe.py", "callbacks", "inside", "workloads")


def keep_code(folder: Path, families: Iterable[Family] = ()) -> None:
    """Copy the probe and the built-in workloads, and each of these families that lies elsewhere."""
    if folder.exists():
        return
    part = folder.with_name(".code.part")
    shutil.rmtree(part, ignore_errors=True)
    for name in COPIED_PARTS:
        origin, copy = PACKAGE / name, part / PACKAGE.name / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if origin.is_dir():
            shutil.copytree(origin, copy, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(origin, copy)
    for family in families:
        if not family.folder.is_relative_to(PACKAGE):
            _keep_family(family, part)
    write_wrappers(part)
    part.rename(folder)


def _keep_family(family: Family, root: Path) -> None:
    """As the same package, whose parents are empty: a family imports nothing else of its distribution."""
    place = root.joinpath(*family.package.split("."))
    if place.exists():
        return
    shutil.copytree(family.folder, place, ignore=shutil.ignore_patterns("__pycache__"))
    for parent in [place, *place.parents][: len(family.package.split("."))]:
        (parent / "__init__.py").touch()


def family_folder(code: Path, family: Family) -> Path:
    """Return where the copy of a family lies in a run's code."""
    return code.joinpath(*family.package.split("."))


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
        programs=hooks / WRAPPERS.name if untouched else None,
    )


# A framework may compile for minutes and print nothing meanwhile.
COMPILING = TrialLimits(trial=900.0, silence=600.0)


def own_job(
    command: Sequence[str], code: Path, folder: Path, *, nodes: int = 1, ranks: int = 1, threads: int = 1
) -> Job:
    """Return the job of a program of ours on the copy of our code; with 0 threads it chooses them itself."""
    path = filter(None, [str(code), os.environ.get("PYTHONPATH")])
    environment = {"PYTHONPATH": os.pathsep.join(path), "PYTHONUNBUFFERED": "1"}
    if threads:
        environment["OMP_NUM_THREADS"] = str(threads)
    return Job(tuple(command), environment, folder, folder, nodes, ranks)


def usual_threads(otherwise: int) -> int:
    named = os.environ.get("OMP_NUM_THREADS", "")
    return int(named) if named.isdecimal() and int(named) else otherwise


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
