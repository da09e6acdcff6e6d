"""Takes one trial of a case whose ranks profile a few steps after the measured ones."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass, replace
from pathlib import Path

from trainmark import __version__
from trainmark.base.errors import UserError, nearest
from trainmark.launch.outcome import Outcome
from trainmark.runner.preflight.prepare import Prepared
from trainmark.runner.program.command import PROFILE_FOLDER
from trainmark.runner.start import RunStoppedError, execute
from trainmark.runner.trial.display import Display
from trainmark.store.identity import SCHEMA, new_uuid
from trainmark.store.run import RunFolder, RunInfo
from trainmark.store.trial import TrialRecord
from trainmark.suite.model import Case, Repeats

EXPLAIN = "explain"
DEFAULT_STEPS = 5


@dataclass(frozen=True)
class ProfiledTrial:
    """A finished trial, its folder, and the profiles that its ranks left there."""

    case: Case
    record: TrialRecord
    folder: Path

    @property
    def profile(self) -> Path:
        return self.folder / PROFILE_FOLDER


def explain_folder(run: Path, slug: str) -> Path:
    """Where the explanation of a case lies, with the trial that was taken for it."""
    return run / EXPLAIN / slug


def with_one_trial(prepared: Prepared, slug: str | None = None) -> Prepared:
    """Narrow a plan to one trial of a case (the only one where none is named), by steps and not by epochs."""
    cases = {case.slug: case for case in prepared.plan.cases}
    if slug is None and len(cases) == 1:
        (slug,) = cases
    if slug not in cases:
        raise UserError(_no_such_case(prepared, slug, list(cases)))
    case = cases[slug]
    once = replace(case, course=None, rules=replace(case.rules, repeats=Repeats(1, 1)))
    return replace(prepared, plan=replace(prepared.plan, cases=(once,), skipped=()))


def _no_such_case(prepared: Prepared, slug: str | None, known: list[str]) -> str:
    if slug is None:
        return f"the run has {len(known)} cases; name one of them: {', '.join(known) or 'none can run here'}."
    for skip in prepared.plan.skipped:
        if skip.case.slug == slug:
            return f"{slug} cannot be explained here: {skip.reason}."
    return f"the run has no case '{slug}'{nearest(slug, known)}"


def profile_case(run: RunFolder, prepared: Prepared, display: Display, steps: int) -> ProfiledTrial:
    """Take the trial in the run's folder `explain/`; one that ends well replaces an earlier one there.

    The code that the run measured is profiled where it knows how; that of earlier versions does not.
    """
    (case,) = prepared.plan.cases
    place = explain_folder(run.path, case.slug)
    part = place.with_name(f".{case.slug}.part")
    shutil.rmtree(part, ignore_errors=True)
    own = explaining_run(run, prepared, part)
    if any((run.code / "trainmark" / place).is_dir() for place in ("inside/profiler", "profiler")):
        shutil.copytree(run.code, own.code)
    else:
        display.note("the code of this run cannot profile itself: that of this version is profiled")
    try:
        trial = profile_run(own, prepared, display, steps)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    shutil.rmtree(place, ignore_errors=True)
    part.rename(place)
    return replace(trial, folder=place / trial.folder.relative_to(part))


def explaining_run(run: RunFolder, prepared: Prepared, path: Path) -> RunFolder:
    """Make the folder of a run of one trial, which belongs to another run."""
    info = RunInfo(
        name=f"{run.path.name}-{EXPLAIN}",
        suite=prepared.suite.name,
        about=prepared.suite.about,
        created=time.time(),
        version=__version__,
        command=run.info.command,
        least=1,
        most=1,
        skipped=(),
        folder=prepared.suite.folder,
        uuid=new_uuid(),
        schema=SCHEMA,
    )
    return RunFolder.create(path, info, prepared.suite.text)


def profile_run(run: RunFolder, prepared: Prepared, display: Display, steps: int) -> ProfiledTrial:
    """Carry out a run of one trial under the profiler; UserError where it left nothing to explain."""
    (case,) = prepared.plan.cases
    try:
        ending = execute(run, prepared, display, profile_steps=steps)
    except RunStoppedError as error:
        raise UserError(str(error)) from error
    if ending.interrupted:
        raise KeyboardInterrupt
    record = next(iter(run.records()), None)
    if record is None or record.outcome != Outcome.OK.value:
        why = f"{record.outcome}: {record.detail}" if record else "it left no record"
        raise UserError(f"the trial that was to be explained failed ({why.rstrip('.')}).")
    return ProfiledTrial(case, record, run.trial(case.slug, 1).done)


def profiled_before(run: RunFolder, case: Case) -> ProfiledTrial | None:
    """Return the trial that was profiled for an earlier explanation; None where there is none."""
    for holder in (RunFolder(explain_folder(run.path, case.slug)), run):
        folder = holder.trial(case.slug, 1).done
        if (folder / PROFILE_FOLDER).is_dir():
            for record in holder.records():
                if (record.spec.case, record.spec.repeat) == (case.slug, 1):
                    return ProfiledTrial(case, record, folder)
    return None
