"""Profiles a CUDA program that no hook knows: started again, with a CUPTI library that the driver loads."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from trainmark.base.errors import UserError
from trainmark.inside.profiler.cupti import build
from trainmark.inside.profiler.cupti.profiler import own_cache
from trainmark.inside.profiler.cupti.records import BrokenRecordsError
from trainmark.launch.outcome import Outcome
from trainmark.runner.explain.profiled_trial import ProfiledTrial, explain_folder, explaining_run
from trainmark.runner.explain.recorded import step_ends, step_seconds, write_profile
from trainmark.runner.preflight.prepare import Prepared
from trainmark.runner.start import execute
from trainmark.runner.trial.display import Display
from trainmark.store.run import RunFolder
from trainmark.suite.model import Command

RECORDS = "records"
MARGIN_STEPS = 3  # recorded beside those that are asked for: the first and the last are not whole
FEWEST_SECONDS, MOST_SECONDS = 0.5, 30.0
NOT_PROFILED = "trainmark: CUDA is not profiled: "  # as injection.c begins to say why


@dataclass(frozen=True)
class Window:
    """When to record, in seconds after the start of the program, and for how long."""

    after: float
    seconds: float


def needs_injection(trial: ProfiledTrial, prepared: Prepared) -> bool:
    """Whether a trial on this machine left no profile, and CUDA may be what it ran on."""
    is_program = isinstance(trial.case.workload, Command) and prepared.cluster is None
    has_profile = any(trial.profile.glob("rank*.json"))
    return is_program and bool(prepared.gpus or os.environ.get(build.LIBRARY)) and not has_profile


def ensure_profile(
    run: RunFolder, prepared: Prepared, trial: ProfiledTrial, display: Display, steps: int
) -> None:
    """Where no hook left a profile, start the program again, and leave one with the measured trial."""
    if not needs_injection(trial, prepared):
        return
    started = trial.record.started - (time.time() - time.monotonic())
    window = window_of(step_ends(trial.folder), started, trial.case.rules.warmup_steps, steps)
    library = cupti_library(trial.case.workload)
    display.note("no hook knows this program: it is started once more, and CUPTI records its kernels")
    part = explain_folder(run.path, trial.case.slug).with_name(f".{trial.case.slug}.injected")
    shutil.rmtree(part, ignore_errors=True)
    try:
        own = explaining_run(run, prepared, part)
        output = (part / RECORDS).absolute()
        variables = build.environment(library, str(output), window.after, window.seconds)
        case = replace(trial.case, environment=(*trial.case.environment, *variables.items()))
        again = replace(prepared, plan=replace(prepared.plan, cases=(case,)))
        if execute(own, again, display).interrupted:
            raise KeyboardInterrupt
        record = next(iter(own.records()), None)
        if record is None or record.outcome != Outcome.OK.value:
            why = f"{record.outcome}: {record.detail}" if record else "it left no record"
            raise UserError(f"the program failed when its kernels were recorded ({why.rstrip('.')}).")
        again_at = own.trial(case.slug, 1).done
        try:
            is_written = write_profile(output, step_ends(again_at), trial)
        except BrokenRecordsError as error:
            raise UserError(str(error)) from None
        if not is_written:
            raise UserError(f"no kernels of this program were recorded: {_why_not(again_at)}.")
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _why_not(folder: Path) -> str:
    """Return what the library wrote into the program's output, else the usual reason."""
    with (folder / "logs" / "rank0.log").open(encoding="utf-8", errors="replace") as log:
        said = (line[len(NOT_PROFILED) :].strip() for line in log if line.startswith(NOT_PROFILED))
        return next(said, "it uses no GPU of NVIDIA, or ended before")


def window_of(ends: Mapping[int, float], started: float, warmup: int, steps: int) -> Window:
    """Return the middle of the time after the warm-up; UserError where that is too short."""
    times = [time - started for _, time in sorted(ends.items())]
    seconds = step_seconds(ends)
    if not seconds:
        raise UserError(
            "the steps of this program are not known: let it print a line for each, and say --pattern REGEX."
        )
    wanted = min(MOST_SECONDS, max(FEWEST_SECONDS, (steps + MARGIN_STEPS) * median(seconds)))
    first, last = times[min(warmup, len(times) - 2)], times[-1]
    if last - first < wanted:
        raise UserError(
            f"the program trains for {last - first:.1f} s after its warm-up, and {wanted:.1f} s are to be "
            "recorded: let it train longer."
        )
    return Window(first + (last - first - wanted) / 2, wanted)


def cupti_library(workload: object) -> str:
    """Return the compiled library; the headers may be in the environment of the program's own Python."""
    if given := os.environ.get(build.LIBRARY):
        return given
    built = build.build(own_cache())
    if built.path:
        return str(built.path)
    python = shlex.split(workload.line)[0] if isinstance(workload, Command) else ""
    if "python" in Path(python).name:
        command = [python, "-m", build.__name__, own_cache()]
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode == 0:
            return done.stdout.strip()
    raise UserError(f"no hook knows this program, and it cannot be profiled without. {built.reason}")
