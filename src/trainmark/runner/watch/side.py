"""One side of a change: a case of an earlier run, with what is put back to measure it again."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from trainmark import __version__
from trainmark.base.errors import UserError
from trainmark.machine.software import performance_variables
from trainmark.runner.preflight.prepare import Prepared, prepare_again
from trainmark.runner.program.command import interpreter
from trainmark.runner.watch.checkout import extract_commit
from trainmark.store.files import StoreError, read_object
from trainmark.store.run import RunFolder, RunInfo
from trainmark.store.trial import ENVIRONMENT
from trainmark.suite.load import Override
from trainmark.suite.model import Case, Command
from trainmark.suite.plan import Plan

# Which devices are used is this machine's matter today.
NOT_PUT_BACK = ("CUDA_VISIBLE_DEVICES",)
SOURCE = ".source"


@dataclass(frozen=True)
class SideSpec:
    """`variables` are those that tune speed, as the run had them; `commit` is that of its working folder."""

    run: str
    case: str
    framework_version: str | None = None
    variables: dict[str, str] = field(default_factory=dict)
    commit: str | None = None
    dirty: bool = False
    python: str | None = None


def spec_of_run(run: RunFolder, case: str, python: str | None = None) -> SideSpec:
    """Return what a run recorded of a case; one that cannot be measured again is refused."""
    name = run.path.name
    run.require_whole()
    record = next((record for record in run.records() if record.spec.case == case and record.figure), None)
    if record is None:
        raise UserError(f"{name} has no trial of {case} with a figure; name another run.")
    if run.cluster is not None:
        raise UserError(f"{name} was run over several machines; watch measures on this one only.")
    if not run.code.is_dir():
        raise UserError(f"{run.code} is missing; without the code that it ran, {name} cannot be run again.")
    if python is not None and shutil.which(python) is None:
        raise UserError(f"{python} is no interpreter on this machine.")
    environment = _environment(run, case, record.spec.repeat)
    git = _mapping(environment.get("git"))
    variables = _mapping(_mapping(environment.get("software")).get("variables"))
    return SideSpec(
        run=name,
        case=case,
        framework_version=record.key.framework_version,
        variables={key: str(value) for key, value in variables.items() if key not in NOT_PUT_BACK},
        commit=git.get("commit"),
        dirty=bool(git.get("dirty")),
        python=python,
    )


def create_side(spec: SideSpec, run: RunFolder, path: Path, with_commit: bool) -> RunFolder:
    """Make a run folder with the suite and the code of the earlier run, and its program's commit."""
    folder = run.info.folder
    if with_commit and folder and spec.commit:
        source = path.with_name(f"{path.name}{SOURCE}")
        folder = str(extract_commit(Path(folder), spec.commit, source, spec.run))
    info = RunInfo(
        name=path.name,
        suite=run.info.suite,
        about=f"{spec.case} of {spec.run}, measured again.",
        created=time.time(),
        version=__version__,
        command="trainmark watch",
        least=0,
        most=0,
        skipped=(),
        folder=folder,
    )
    made = RunFolder.create(path, info, run.suite)
    shutil.copytree(run.code, made.code)
    return made


def prepare_side(spec: SideSpec, run: RunFolder) -> Prepared:
    """Plan the one case of this side, in the interpreter that has the version it was measured with."""
    option = f"--python {spec.python}"
    overrides = [Override(f"python={spec.python}", option)] if spec.python else []
    prepared = prepare_again(run.suite, run.info.folder, overrides=overrides)
    planned = [
        case for case in prepared.plan.cases if spec.case in (case.slug, replace(case, python=None).slug)
    ]
    if not planned:
        skips = {skip.case.slug: skip.reason for skip in prepared.plan.skipped}
        reason = skips.get(spec.case) or "; ".join(sorted(set(skips.values()))) or "it is not planned"
        raise UserError(f"{spec.case} of {spec.run} cannot run here any more: {reason.rstrip('.')}.")
    case = planned[0]
    version = prepared.facts.get(case.slug, {}).get("framework_version")
    if version != spec.framework_version and None not in (version, spec.framework_version):
        raise UserError(
            f"{spec.run} was measured with {case.framework} {spec.framework_version}, but "
            f"{interpreter(case)} has {version}; name an interpreter that has it with --python-a (before) "
            "or --python-b (after)."
        )
    return replace(prepared, plan=Plan((case,), (), prepared.plan.seed))


def is_program(prepared: Prepared) -> bool:
    """Whether the case is a user's program, which runs in its own folder."""
    return any(isinstance(case.workload, Command) for case in prepared.plan.cases)


def what_runs(spec: SideSpec, prepared: Prepared, run: RunFolder) -> tuple[Any, ...]:
    """Return what decides how fast a side is as far as it is put back: two equal ones are one program."""
    (case,) = prepared.plan.cases
    folder = prepared.suite.folder if isinstance(case.workload, Command) else None
    return (_plain(case), str(interpreter(case)), tuple(sorted(spec.variables.items())), folder, code_of(run))


def code_of(run: RunFolder) -> str:
    """Return a digest of the code that a run's programs import."""
    digest = hashlib.sha256()
    for file in sorted(run.code.rglob("*")):
        if file.is_file() and file.suffix != ".pyc":
            digest.update(f"{file.relative_to(run.code)} {file.stat().st_size}\n".encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()


@contextlib.contextmanager
def variables_of(spec: SideSpec) -> Iterator[None]:
    """Give the ranks the performance variables of the run, and no others."""
    today = {key: text for key, text in performance_variables().items() if key not in NOT_PUT_BACK}
    for name in today:
        del os.environ[name]
    os.environ.update(spec.variables)
    try:
        yield
    finally:
        for name in spec.variables:
            os.environ.pop(name, None)
        os.environ.update(today)


def _plain(case: Case) -> Case:
    """Return a case without what does not change its speed."""
    return replace(case, label=None, python=None, rules=replace(case.rules, repeats=Case.rules.repeats))


def _environment(run: RunFolder, case: str, repeat: int) -> Mapping[str, Any]:
    try:
        return read_object(run.trial(case, repeat).done / ENVIRONMENT)
    except StoreError:
        return run.environment


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
