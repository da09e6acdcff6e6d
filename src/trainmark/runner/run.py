"""Opens a run folder, new or old, carries its plan out, and keeps the reference rates that it gave."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from trainmark import __version__
from trainmark.base.errors import UserError
from trainmark.base.files import home
from trainmark.launch.delivery import archive_of, folder_bytes
from trainmark.launch.job import Launcher
from trainmark.launch.launcher import LocalLauncher
from trainmark.launch.options import encode_options
from trainmark.launch.outcome import Outcome
from trainmark.measure.result import CaseTrial, summarize
from trainmark.measure.utilisation import ReferenceRate, is_fused, merge_reference_rates, reference_rates
from trainmark.runner import conformance
from trainmark.runner.cluster import AllocationGoneError, NodeFailures
from trainmark.runner.command import family_folder, interpreter, keep_code, named_interpreter
from trainmark.runner.conformance import code_digest
from trainmark.runner.interrupts import Interrupts
from trainmark.runner.prepare import Prepared, suite_parcel_folder
from trainmark.runner.progress import RunDisplay
from trainmark.runner.quiet import QuietWait
from trainmark.runner.session import RunEnding, carry_out
from trainmark.runner.trial import RunContext
from trainmark.store.files import StoreError
from trainmark.store.identity import SCHEMA, new_uuid
from trainmark.store.measurements import read_reference_rates, write_reference_rates
from trainmark.store.run import RUN, RunFolder, RunInfo, new_path
from trainmark.store.trial import TrialRecord
from trainmark.suite.model import Command
from trainmark.suite.plan import Plan
from trainmark.workloads.registry import Family

LARGEST_PROGRAM_BYTES = 64 << 20


def new_run(prepared: Prepared, runs: Path, name: str | None, command: str) -> RunFolder:
    name = name or f"{prepared.suite.name}-{time.strftime('%Y%m%d-%H%M%S')}"
    path = new_path(runs, name, RUN)
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
    display: RunDisplay,
    first_port: int | None = None,
    profile_steps: int = 0,
    wait_quiet: float = 0.0,
) -> RunEnding:
    """Run what is not finished yet.

    `wait_quiet` seconds at most go into waiting for a quiet machine before the trials.
    """
    with opened_run(run, prepared, display, first_port) as (context, interrupts):
        context = replace(context, profile_steps=profile_steps, quiet=QuietWait(wait_quiet))
        run.mark_running()
        ending = carry_out(prepared.plan, context, interrupts)
        if not ending.interrupted and not ending.tally.unplaced:
            run.mark_ended(time.time())
        return ending


@contextlib.contextmanager
def opened_run(
    run: RunFolder, prepared: Prepared, display: RunDisplay, first_port: int | None = None
) -> Iterator[tuple[RunContext, Interrupts]]:
    """Hold a run for trials in it; a full disk or the like stops it with a sentence."""
    try:
        with run.locked(), Interrupts(display.note) as interrupts:
            keep_code(run.code, families_of(prepared.plan))
            launcher = launcher_for(run, prepared, first_port)
            if prepared.cluster is not None and (why := prepared.cluster.launcher.one_by_one):
                display.note(f"the nodes are reached one by one: {why}")
            context = context_of(run, prepared, launcher, display, interrupts.stop_now)
            yield replace(context, interruptible=interrupts.raised), interrupts
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
    run: RunFolder,
    prepared: Prepared,
    launcher: Launcher,
    display: RunDisplay,
    stop_asked: Callable[[], bool],
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
            verdict = conformance.find(
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


def save_reference_rates(run: RunFolder, note: Callable[[str], None]) -> None:
    """Add the run's reference rates to this machine's, and those of its devices to the run's own folder.

    A report needs none of it, so that whatever goes wrong here is a note and no more.
    """
    records = run.records()
    own = _measured_rates(records, run.info.version)
    troubles: list[str] = []
    machine_rates = _stored_rates(home(), troubles)
    known = merge_reference_rates(
        merge_reference_rates(machine_rates, _stored_rates(run.path, troubles)), own
    )
    if own and (updated := merge_reference_rates(machine_rates, own)) != machine_rates:
        _save_rates(home(), updated, troubles)
    devices = {record.key.device for record in records}
    if of_run := [each for each in known if each.device in devices]:
        _save_rates(run.path, of_run, troubles)
    if troubles:
        note(f"speed of light: {' '.join(troubles)}")


def _measured_rates(records: Iterable[TrialRecord], version: str) -> tuple[ReferenceRate, ...]:
    """Dated by the last trial of the fused step, so that resuming an old run makes nothing newer."""
    fused = [record for record in records if is_fused(record.key) and record.figure is not None]
    if not fused:
        return ()
    last = max(record.started for record in fused)
    taken = datetime.fromtimestamp(last, timezone.utc).isoformat(timespec="seconds")
    results = summarize([CaseTrial(record.key, record.figure, record.environment) for record in fused])
    return reference_rates(results, taken, version)


def _stored_rates(folder: Path, troubles: list[str]) -> tuple[ReferenceRate, ...]:
    try:
        return read_reference_rates(folder)
    except StoreError as error:
        troubles.append(str(error))
    except OSError as error:
        troubles.append(f"the reference rates in {folder} cannot be read: {error.strerror}.")
    return ()


def _save_rates(folder: Path, rates: Iterable[ReferenceRate], troubles: list[str]) -> None:
    try:
        write_reference_rates(folder, rates)
    except OSError as error:
        troubles.append(f"the reference rates cannot be written to {folder}: {error.strerror}.")
