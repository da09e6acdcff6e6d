"""Takes one trial of a case whose ranks profile a few steps after the measured ones.

A CUDA program that no hook knows is started again, with a CUPTI library that the driver loads, and its
records become the profile that hooks would have left.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from statistics import median

from trainmark import __version__
from trainmark.base.errors import UserError, nearest
from trainmark.events import Step, stream
from trainmark.explain import chrome_trace
from trainmark.explain.profile import Profile
from trainmark.explain.profile_folder import TIMING
from trainmark.explain.profile_folder import VERSION as PROFILE_VERSION
from trainmark.explain.what_if.situation import NO_FRAMEWORK
from trainmark.inside.profiler.capture import STEP
from trainmark.inside.profiler.cupti import build, records
from trainmark.inside.profiler.cupti.profiler import own_cache
from trainmark.inside.profiler.cupti.records import BrokenRecordsError
from trainmark.launch.outcome import Outcome
from trainmark.runner.command import PROFILE_FOLDER
from trainmark.runner.prepare import Prepared
from trainmark.runner.progress import RunDisplay
from trainmark.runner.run import RunStoppedError, execute
from trainmark.store.files import write_json
from trainmark.store.identity import SCHEMA, new_uuid
from trainmark.store.run import RunFolder, RunInfo
from trainmark.store.trial import EVENTS, TrialRecord
from trainmark.suite.model import Case, Command, Repeats

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


def profile_case(run: RunFolder, prepared: Prepared, display: RunDisplay, steps: int) -> ProfiledTrial:
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


def profile_run(run: RunFolder, prepared: Prepared, display: RunDisplay, steps: int) -> ProfiledTrial:
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


# Recording is ended by waiting for the device, and its records are written then.
DISTURBED_STEPS = 2


def step_ends(folder: Path) -> dict[int, float]:
    """Return when each step of a trial's first rank ended, by the host's monotonic clock."""
    path = folder / EVENTS / "rank0.jsonl"
    events = stream.read(path) if path.exists() else ()
    return {event.step: event.mono for event in events if isinstance(event, Step) and event.mono is not None}


def step_seconds(ends: Mapping[int, float]) -> list[float]:
    """Return how long steps took; a line may come for every tenth of them."""
    return [
        (after - before) / (number - last)
        for (last, before), (number, after) in pairwise(sorted(ends.items()))
        if after > before
    ]


def write_profile(output: Path, ends: Mapping[int, float], trial: ProfiledTrial) -> bool:
    """Write manifest and trace of each process that launched kernels, as hooks would have left them.

    `output` is what the names of the records begin with. Returns whether there are any; else nothing is left.
    """
    folder = output.with_name(PROFILE_FOLDER)
    folder.mkdir()
    paths = sorted(output.parent.glob(f"{output.name}.*"), key=lambda path: int(path.suffix[1:]))
    ranks: list[tuple[Path, Path, Profile, int]] = []
    for path in paths:
        trace = folder / f"rank{len(ranks)}-{TIMING}.json.gz"
        profile, lost = converted(path, trace, ends)
        if profile.device == "cuda":
            ranks.append((path, trace, profile, lost))
        else:
            trace.unlink()
    for rank, (path, trace, profile, lost) in enumerate(ranks):
        began = records.began(str(path))[1] / 1e9
        ended = began + int(profile.spans.end.max()) / 1e9
        beside = unprofiled(ends, began, ended, trial.case.rules.warmup_steps)
        names = records.device_names(str(path))
        seconds = [(step.end - step.start) / 1e9 for step in profile.steps]
        write_json(
            folder / f"rank{rank}.json",
            {
                "version": PROFILE_VERSION,
                "rank": rank,
                "world_size": len(ranks),
                "framework": trial.record.key.framework or NO_FRAMEWORK,
                "framework_version": trial.record.key.framework_version,
                "device": "cuda",
                "device_name": names[0] if names else None,
                "passes": [
                    {"name": TIMING, "trace": trace.name, "steps": len(seconds), "step_seconds": seconds}
                ],
                "unprofiled_step_seconds": beside,
                "stream_clock": "host",
                "facts": {"profiler": "cupti", "lost_records": {TIMING: lost}},
            },
        )
    if ranks:
        shutil.rmtree(trial.profile, ignore_errors=True)
        folder.rename(trial.profile)
    return bool(ranks)


def converted(path: Path, trace: Path, ends: Mapping[int, float]) -> tuple[Profile, int]:
    """Write the records as a trace with steps: by kernels that repeat, else as the program tells them."""
    process = int(path.suffix[1:])
    known = step_seconds(ends)
    expected = median(known) if known else None
    lost = records.convert(str(path), [], str(trace), process)
    profile = chrome_trace.read(trace, expected)
    if len(profile.steps) > 1:
        return profile, lost
    clock, host = records.began(str(path))
    last = clock + int(profile.spans.end.max()) if len(profile.spans) else clock
    annotations = [
        annotation for annotation in annotations_of(ends, clock, host, process) if annotation.end <= last
    ]
    lost = records.convert(str(path), annotations, str(trace), process)
    return chrome_trace.read(trace, expected), lost


def annotations_of(ends: Mapping[int, float], clock: int, host: int, thread: int) -> list[records.Annotation]:
    """Return the steps on the clock of the records, which was `clock` when the host's was `host`."""
    times = [(number, clock + round(end * 1e9) - host) for number, end in sorted(ends.items())]
    return [
        records.Annotation(STEP.format(number), before, after, thread)
        for (_, before), (number, after) in pairwise(times)
        if after > clock
    ]


def unprofiled(ends: Mapping[int, float], began: float, ended: float, warmup: int) -> list[list[float]]:
    """Return the steps from before and after the recording, without those that its begin and end disturb."""
    before = {number: end for number, end in ends.items() if end < began and number >= warmup}
    after = {number: end for number, end in ends.items() if end > ended}
    after = dict(sorted(after.items())[DISTURBED_STEPS:])
    return [seconds for seconds in (step_seconds(before), step_seconds(after)) if seconds]


RECORDS = "records"
MARGIN_STEPS = 3  # recorded beside those that are asked for: the first and the last are not whole
FEWEST_SECONDS, MOST_SECONDS = 0.5, 30.0
NOT_PROFILED = "trainmark: CUDA is not profiled: "  # as injection.c begins to say why


@dataclass(frozen=True)
class RecordingWindow:
    """When to record, in seconds after the start of the program, and for how long."""

    after: float
    seconds: float


def needs_injection(trial: ProfiledTrial, prepared: Prepared) -> bool:
    """Whether a trial on this machine left no profile, and CUDA may be what it ran on."""
    is_program = isinstance(trial.case.workload, Command) and prepared.cluster is None
    has_profile = any(trial.profile.glob("rank*.json"))
    return is_program and bool(prepared.gpus or os.environ.get(build.LIBRARY)) and not has_profile


def ensure_profile(
    run: RunFolder, prepared: Prepared, trial: ProfiledTrial, display: RunDisplay, steps: int
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


def window_of(ends: Mapping[int, float], started: float, warmup: int, steps: int) -> RecordingWindow:
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
    return RecordingWindow(first + (last - first - wanted) / 2, wanted)


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
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        if done.returncode == 0:
            return done.stdout.strip()
    raise UserError(f"no hook knows this program, and it cannot be profiled without. {built.reason}")
