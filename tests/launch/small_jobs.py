"""Jobs of a few lines of Python, run by the real launcher, and a look at what they leave behind."""

from __future__ import annotations

import os
import sys
import textwrap
import time
from pathlib import Path

import psutil

from trainmark.launch.job import Job
from trainmark.launch.watch import TrialLimits, watch

HANG_GUARD_SECONDS = 60.0
SOURCE = Path(__file__).resolve().parents[2] / "src"
PATIENT = TrialLimits(trial=HANG_GUARD_SECONDS, silence=HANG_GUARD_SECONDS)


def python_job(folder: Path, script: str, ranks: int = 1, **environment: str) -> Job:
    """`script` sees `rank`, `folder` (the trial's), os, sys, time and the probe."""
    prelude = "import os, sys, time\nrank, folder = int(os.environ['RANK']), os.environ['FOLDER']\n"
    return Job(
        command=(sys.executable, "-u", "-c", prelude + textwrap.dedent(script)),
        environment={"PYTHONPATH": str(SOURCE), "FOLDER": str(folder), **environment},
        working_folder=folder,
        folder=folder,
        nodes=1,
        ranks_per_node=ranks,
    )


def shell_job(folder: Path, line: str) -> Job:
    return Job(("sh", "-c", line), {}, folder, folder, nodes=1, ranks_per_node=1)


def carry_out(launcher, job: Job, limits: TrialLimits = PATIENT, stop_asked=lambda: False):
    """The ending of the job, once nothing of it is left."""
    return watch(launcher.start(job), job, limits, stop_asked, tick=lambda: None)


def left_running(job: Job) -> list[int]:
    """Every process that still carries the job's mark."""
    mark = str(job.folder / "events")
    processes = psutil.process_iter(["pid", "environ", "status"])
    return [
        process.pid
        for process in processes
        if (process.info["environ"] or {}).get("TRAINMARK_EVENTS") == mark
        and process.info["status"] != psutil.STATUS_ZOMBIE
    ]


def wait_for(condition, what: str) -> None:
    deadline = time.monotonic() + HANG_GUARD_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.02)


def printed(job: Job, text: bytes) -> bool:
    return job.log(0).exists() and job.log(0).read_bytes() == text


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
