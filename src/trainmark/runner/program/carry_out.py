"""Carry out a job outside a run, and once more after a transient end such as a port that is taken."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from trainmark.launch.job import Job, Launcher
from trainmark.launch.outcome import JobEnd, JobOutcome, outcome_of, tail
from trainmark.launch.watch import TrialLimits, watch

# Ports are free when they are chosen; another program may bind one before the ranks do.
RETRIES = 2


def carry_out(
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
