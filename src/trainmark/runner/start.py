"""Opens a run folder, new or old, and carries its plan out."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from trainmark import __version__
from trainmark.base.errors import UserError
from trainmark.launch.delivery import archive_of, folder_bytes
from trainmark.launch.job import Launcher
from trainmark.launch.launcher import LocalLauncher
from trainmark.launch.options import encode_options
from trainmark.launch.outcome import Outcome
from trainmark.runner.conform import record
from trainmark.runner.conform.digest import code_digest
from trainmark.runner.interrupts import Interrupts
from trainmark.runner.preflight.prepare import Prepared, suite_parcel_folder
from trainmark.runner.program.code import family_folder, keep_code
from trainmark.runner.program.command import interpreter, named_interpreter
from trainmark.runner.session import RunEnding, carry_out
from trainmark.runner.trial.display import Display
from trainmark.runner.trial.node_failures import AllocationGoneError, NodeFailures
from trainmark.runner.trial.quiet import QuietWait
from trainmark.runner.trial.trial import RunContext
from trainmark.store.files import StoreError
from trainmark.store.identity import SCHEMA, new_uuid
from trainmark.store.run import RUN, SAFE_NAME, RunFolder, RunInfo, taken
from trainmark.suite.model import Command
from trainmark.suite.plan import Plan
from trainmark.workloads.registry import Family

LARGEST_PROGRAM_BYTES = 64 << 20


def new_run(prepared: Prepared, runs: Path, name: str | None, command: str) -> RunFolder:
    name = name or f"{prepared.suite.name}-{time.strftime('%Y%m%d-%H%M%S')}"
    if not SAFE_NAME.fullmatch(name) or name == "latest":
        raise StoreError(f"'{name}' cannot name a run; use letters, digits, '.', '_', '+' and '-'.")
    path = runs / name
    if path.exists():
        raise taken(path, RUN)
    plan = prepared.plan
    info = RunInfo(
        name=name,
        suite=prepared.suite.name,
        about=prepared.suite.about,
        created=time.time(),
        version=__version__,
        command=command,
        least=len(plan.certain()),
        most=sum(case.rules.repeats.most for case in plan.cases),
        skipped=tuple((skip.case.slug, skip.reason) for skip in plan.skipped),
        folder=prepared.suite.folder,
        uuid=new_uuid(),
        schema=SCHEMA,
        against=plan.against,
    )
    return RunFolder.create(path, info, prepared.suite.text)


def execute(
    run: RunFolder,
    prepared: Prepared,
    display: Display,
    first_port: int | None = None,
    profile_steps: int = 0,
    wait_quiet: float = 0.0,
) -> RunEnding:
    """Runs what is not finished yet; a full disk or the like stops it with a sentence.

    `wait_quiet` seconds at most go into waiting for a quiet machine before the trials.
    """
    try:
        with run.locked(), Interrupts(display.note) as interrupts:
            keep_code(run.code, families_of(prepared.plan))
            launcher = launcher_for(run, prepared, first_port)
            if prepared.cluster is not None and (why := prepared.cluster.launcher.one_by_one):
                display.note(f"the nodes are reached one by one: {why}")
            context = context_of(run, prepared, launcher, display, interrupts.stop_now)
            context = replace(
                context,
                interruptible=interrupts.raised,
                profile_steps=profile_steps,
                quiet=QuietWait(wait_quiet),
            )
            run.mark_running()
            ending = carry_out(prepared.plan, context, interrupts)
            if not ending.interrupted and not ending.tally.unplaced:
                run.mark_ended(time.time())
            return ending
    except AllocationGoneError as error:
        raise RunStoppedError(
            f"the run stopped: {error}; go on with `trainmark run --resume {run.path}`."
        ) from error
    except OSError as error:
        raise RunStoppedError(
            f"the run stopped: {error.strerror or error} ({error.filename or run.path}); "
            f"mend that, then `trainmark run --resume {run.path}`."
        ) from error


def families_of(plan: Plan) -> list[Family]:
    """Return every family that some case trains."""
    return [case.family for case in plan.cases if not isinstance(case.workload, Command)]


def context_of(
    run: RunFolder, prepared: Prepared, launcher: Launcher, display: Display, stop_asked: Callable[[], bool]
) -> RunContext:
    from trainmark.machine import environment

    # Taken anew when a run is resumed: each trial keeps the environment that it really had.
    captured = environment.capture(folder=Path.cwd(), python=_interpreter(prepared))
    run.keep_environment(environment.to_dict(captured))
    run.keep_facts(_with_conformance(prepared, run.code))
    return RunContext(
        run=run,
        launcher=launcher,
        nodes=NodeFailures(prepared.cluster),
        environment=environment.to_dict(captured),
        fingerprint=environment.fingerprint(captured),
        device=prepared.device,
        gpus=prepared.gpus,
        facts=prepared.facts,
        suite_folder=prepared.suite.folder,
        seed=prepared.plan.seed,
        display=display,
        stop_asked=stop_asked,
    )


class RunStoppedError(RuntimeError):
    """The machine, not the input, is at fault: finished trials are safe, the run can be resumed."""


def launcher_for(run: RunFolder, prepared: Prepared, first_port: int | None) -> Launcher:
    """With the code of the run, and the folder of the user's own program, on their way to every node."""
    cluster = prepared.cluster
    if cluster is None:
        return LocalLauncher(first_port)
    run.keep_cluster(encode_options(cluster.choice), cluster.facts)
    cluster.launcher.bring(archive_of(run.code.absolute()))
    if folder := suite_parcel_folder(prepared):
        if folder_bytes(folder) > LARGEST_PROGRAM_BYTES:
            raise UserError(
                f"{folder} is larger than 64 MiB and would be sent to every node; "
                "put the suite beside the program alone."
            )
        cluster.launcher.bring(archive_of(folder))
    return cluster.launcher


def forget_failures(run: RunFolder, only: Outcome | None = None) -> None:
    """Sets failed trials aside, so that the next session runs them again."""
    with run.locked():
        for record in run.records():
            if record.outcome != Outcome.OK.value and only in (None, record.outcome):
                place = run.trial(record.spec.case, record.spec.repeat)
                place.set_aside(place.done, record.outcome)


def _with_conformance(prepared: Prepared, code: Path) -> dict[str, dict[str, Any]]:
    """What the frameworks said of themselves, and what was found of the very code that this run measures."""
    facts = {slug: dict(known) for slug, known in prepared.facts.items()}
    for case in prepared.plan.cases:
        if not isinstance(case.workload, Command) and (known := facts.get(case.slug)):
            version = known.get("framework_version")
            framework, family = str(case.framework), case.family
            digest = code_digest(family, framework, family_folder(code, family))
            verdict = record.find(
                case.workload_name, framework, version, str(interpreter(case)), case.device, digest
            )
            known["conformance"] = verdict and {
                "conformant": verdict.conformant,
                "differs": verdict.differs,
                "checked": verdict.checked,
            }
    return facts


def _interpreter(prepared: Prepared) -> Path | None:
    named = next(filter(None, map(named_interpreter, prepared.plan.cases)), None)
    path = shutil.which(named) if named else None
    return Path(path) if path else None
