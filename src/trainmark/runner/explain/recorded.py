"""CUPTI's records of a program that no hook knows, as the profile that hooks would have left."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from statistics import median

from trainmark.events import Step, stream
from trainmark.explain.profile import chrome
from trainmark.explain.profile.folder import TIMING
from trainmark.explain.profile.folder import VERSION as PROFILE_VERSION
from trainmark.explain.profile.model import Profile
from trainmark.explain.what_if.situation import NO_FRAMEWORK
from trainmark.inside.profiler.capture import STEP
from trainmark.inside.profiler.cupti import records
from trainmark.runner.explain.profiled_trial import ProfiledTrial
from trainmark.runner.program.command import PROFILE_FOLDER
from trainmark.store.files import write_json
from trainmark.store.trial import EVENTS

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
    profile = chrome.read(trace, expected)
    if len(profile.steps) > 1:
        return profile, lost
    clock, host = records.began(str(path))
    last = clock + int(profile.spans.end.max()) if len(profile.spans) else clock
    annotations = [
        annotation for annotation in annotations_of(ends, clock, host, process) if annotation.end <= last
    ]
    lost = records.convert(str(path), annotations, str(trace), process)
    return chrome.read(trace, expected), lost


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
