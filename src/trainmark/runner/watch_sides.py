"""The two sides of a change: cases of earlier runs, what is put back to measure them again, and their folder.

`watch.json` is written last, so that a folder without it was never one; both sides are run folders, and the
pairs are the trials of equal number in them: nothing else needs to survive a `kill -9`.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import tarfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from trainmark import __version__
from trainmark.base import typed_json
from trainmark.base.errors import UserError
from trainmark.base.text import natural_key
from trainmark.machine.software import performance_variables
from trainmark.measure.ab import FactDifference
from trainmark.runner.bisect.commits import ABBREVIATED, git
from trainmark.runner.command import interpreter
from trainmark.runner.pairs import TrialPair, pairs_of
from trainmark.runner.prepare import Prepared, prepare_text
from trainmark.store.files import StoreError, decoded, read_object, write_json
from trainmark.store.run import RunFolder, RunInfo, new_path
from trainmark.store.trial import ENVIRONMENT
from trainmark.suite.load import Override
from trainmark.suite.model import Case, Command
from trainmark.suite.plan import Plan


def extract_commit(folder: Path, commit: str, place: Path, run: str) -> Path:
    """Unpack the files of a commit into `place`, and return what corresponds to `folder` there.

    By `git archive`, so that the repository gets no further worktree, and what is not committed stays where
    it is.
    """
    name = f"commit {commit[:ABBREVIATED]} of {run}"
    gone = f"{folder} is in no git repository any more; {name} is not there"
    (top,) = git(folder, "rev-parse", "--show-toplevel", refusal=gone)
    prefix = "".join(git(folder, "rev-parse", "--show-prefix"))
    absent = f"{top} does not have {name}; fetch it and try again"
    git(folder, "rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}", refusal=absent)
    place.mkdir(parents=True)
    with subprocess.Popen(["git", "-C", top, "archive", commit], stdout=subprocess.PIPE) as archive:
        assert archive.stdout is not None
        try:
            with tarfile.open(fileobj=archive.stdout, mode="r|") as files:
                files.extractall(place, filter="data")
        except tarfile.TarError as error:
            raise UserError(f"{name} cannot be unpacked: {error}.") from error
    return place / prefix


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
    prepared = prepare_text(run.suite, "suite.yaml", run.info.folder, overrides)
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


WATCH, BEFORE, AFTER = "watch.json", "before", "after"


@dataclass(frozen=True)
class WatchPlan:
    """What is compared, and until when. `most_seconds` counts the time of the trials."""

    case: str
    before: SideSpec
    after: SideSpec
    matters: float
    error: float
    most_pairs: int
    most_seconds: float | None
    seed: int
    created: float
    differences: tuple[FactDifference, ...] = ()


class WatchFolder:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.before, self.after = RunFolder(path / BEFORE), RunFolder(path / AFTER)

    @property
    def plan(self) -> WatchPlan:
        path = self.path / WATCH
        return decoded(WatchPlan, read_object(path), path)

    def extend(self, most_pairs: int | None, most_seconds: float | None) -> None:
        """Allow more pairs or time: the test may go on as long as one likes, and its error rate holds."""
        plan = self.plan
        changed = replace(
            plan,
            most_pairs=plan.most_pairs if most_pairs is None else most_pairs,
            most_seconds=plan.most_seconds if most_seconds is None else most_seconds,
        )
        if changed != plan:
            write_json(self.path / WATCH, typed_json.encode(changed))

    def locked(self) -> AbstractContextManager[object]:
        """One harness at a time."""
        stack = ExitStack()
        stack.enter_context(self.before.locked())
        stack.enter_context(self.after.locked())
        return stack

    def pairs(self) -> list[TrialPair]:
        return pairs_of(self.before.records(), self.after.records())

    @contextlib.contextmanager
    def removed_on_error(self) -> Iterator[None]:
        """Leave nothing of a watch that cannot begin."""
        try:
            yield
        except (UserError, OSError):
            self.remove()
            raise

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)


def create_watch(
    place: Path, name: str, plan: WatchPlan, runs: Sequence[RunFolder], with_commits: bool
) -> WatchFolder:
    """Make the folder with the suites and the code of both runs (before, after)."""
    path = new_path(place, name, WATCH)
    path.mkdir(parents=True)
    folder = WatchFolder(path)
    with folder.removed_on_error():
        for side, spec, run in zip((BEFORE, AFTER), (plan.before, plan.after), runs, strict=True):
            create_side(spec, run, path / side, with_commits)
        write_json(path / WATCH, typed_json.encode(plan))
    return folder


def find_watch(name: str, runs: Path) -> WatchFolder:
    """Find a watch by path, by name below `runs`, or the latest one."""
    folders = [path for path in (runs.iterdir() if runs.is_dir() else ()) if (path / WATCH).is_file()]
    if name == "latest" and folders:
        return WatchFolder(
            max(folders, key=lambda path: (WatchFolder(path).plan.created, natural_key(path.name)))
        )
    for path in (Path(name), runs / name):
        if (path / WATCH).is_file():
            return WatchFolder(path)
    raise StoreError(f"there is no watch '{name}' in {runs} to go on with.")


def default_name() -> str:
    return f"watch-{time.strftime('%Y%m%d-%H%M%S')}"
