"""Carry out a job outside a run, and once more after a transient end such as a port that is taken."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from trainmark.launch.job.job import Job, Launcher
from trainmark.launch.job.log_tail import tail
from trainmark.launch.job.outcome import Ending, Judgement, judge
from trainmark.launch.job.watch import Limits, watch

# Ports are free when they are chosen; another program may bind one before the ranks do.
RETRIES = 2


def carry_out(
    job_in: Callable[[Path], Job],
    folder: Path,
    launcher: Launcher,
    limits: Limits,
    stop_asked: Callable[[], bool],
) -> tuple[Job, Ending, Judgement]:
    """Return the last attempt; `job_in` makes the job of each in a new folder within `folder`."""
    for attempt in range(1 + RETRIES):
        own = folder / f"attempt{attempt}"
        own.mkdir()
        job = job_in(own)
        ending = watch(launcher.start(job), job, limits, stop_asked, lambda: None)
        judgement = judge(ending, {rank: tail(job.log(rank)) for rank in range(job.world_size)})
        if not judgement.transient:
            break
    return job, ending, judgement
