"""Opens a run folder, new or old, and carries its plan out."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

from trainmark import __version__
from trainmark.conform import record
from trainmark.conform.verdict import code_digest
from trainmark.launch.local import LocalLauncher
from trainmark.launch.outcome import Outcome
from trainmark.runner.code import PACKAGE, keep_code
from trainmark.runner.command import interpreter, named_interpreter
from trainmark.runner.display import Display
from trainmark.runner.interrupts import Interrupts
from trainmark.runner.prepare import Prepared
from trainmark.runner.session import Finish, carry_out
from trainmark.runner.trial import Bench
from trainmark.store.files import StoreError
from trainmark.store.run import SAFE_NAME, RunFolder, RunInfo
from trainmark.suite.model import Command


def new_run(prepared: Prepared, runs: Path, name: str | None, command: str) -> RunFolder:
    name = name or f"{prepared.suite.name}-{time.strftime('%Y%m%d-%H%M%S')}"
    if not SAFE_NAME.fullmatch(name) or name == "latest":
        raise StoreError(f"'{name}' cannot name a run; use letters, digits, '.', '_', '+' and '-'.")
    path = runs / name
    if path.exists():
        raise StoreError(f"{path} exists; add --resume to go on with it, or choose another --name.")
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
    )
    return RunFolder.create(path, info, prepared.suite.text)


def execute(run: RunFolder, prepared: Prepared, display: Display, first_port: int | None = None) -> Finish:
    """Runs what is not finished yet; a full disk or the like stops it with a sentence."""
    from trainmark.system.environment import capture, fingerprint, to_dict

    try:
        with run.locked(), Interrupts(display.note) as interrupts:
            keep_code(run.code)
            # Taken anew when a run is resumed: each trial keeps the environment that it really had.
            environment = capture(folder=Path.cwd(), python=_interpreter(prepared))
            run.keep_environment(to_dict(environment))
            run.keep_facts(_with_conformance(prepared, run.code))
            bench = Bench(
                run=run,
                launcher=LocalLauncher(first_port),
                environment=to_dict(environment),
                fingerprint=fingerprint(environment),
                device=prepared.device,
                gpus=prepared.gpus,
                facts=prepared.facts,
                suite_folder=prepared.suite.folder,
                display=display,
                stop_asked=interrupts.stop_now,
            )
            return carry_out(prepared.plan, bench, interrupts)
    except OSError as error:
        raise RunStoppedError(
            f"the run stopped: {error.strerror or error} ({error.filename or run.path}); "
            f"mend that, then `trainmark run --resume {run.path}`."
        ) from error


class RunStoppedError(RuntimeError):
    """The machine, not the input, is at fault: finished trials are safe, the run can be resumed."""


def forget_failures(run: RunFolder) -> None:
    """Sets failed trials aside, so that the next session runs them again."""
    with run.locked():
        for record in list(run.records()):
            if record.outcome != Outcome.OK.value:
                place = run.trial(record.spec.case, record.spec.repeat)
                place.set_aside(place.done, record.outcome)


def _with_conformance(prepared: Prepared, code: Path) -> dict[str, dict[str, Any]]:
    """What the frameworks said of themselves, and what was found of the very code that this run measures."""
    facts = {slug: dict(known) for slug, known in prepared.facts.items()}
    for case in prepared.plan.cases:
        if not isinstance(case.workload, Command) and (known := facts.get(case.slug)):
            version = known.get("framework_version")
            digest = code_digest(str(case.framework), code / PACKAGE.name / "workloads" / case.workload)
            verdict = record.find(str(case.framework), version, str(interpreter(case)), case.device, digest)
            known["conformance"] = verdict and {
                "conformant": verdict.conformant,
                "differs": verdict.differs,
                "checked": verdict.checked,
            }
    return facts


def _interpreter(prepared: Prepared) -> Path | None:
    named = next(filter(None, map(named_interpreter, prepared.plan.cases)), None)
    found = shutil.which(named) if named else None
    return Path(found) if found else None
