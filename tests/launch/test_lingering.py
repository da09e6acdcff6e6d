"""A program whose steps are all measured is not waited for without end."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace

import pytest
from small_jobs import HANG_GUARD_SECONDS, carry_out, left_running, python_job

from trainmark.launch import watch
from trainmark.launch.outcome import EndCause, Outcome, outcome_of
from trainmark.launch.watch import GRACE_SECONDS, SAVING_BYTES, Lingering, TrialLimits

# What the hooks leave of a rank that was told to end, and a thread that does not let it.
HELD = """
import os, threading, time
from pathlib import Path
folder = Path(os.environ["TRAINMARK_EVENTS"])
(folder / "observed-pytorch-rank0.jsonl").write_text("{}")
(folder / "told-to-end-rank0").write_text("told")
threading.Thread(target=time.sleep, args=(600,)).start()
"""


@pytest.fixture
def job(tmp_path):
    (tmp_path / "events").mkdir()
    return replace(python_job(tmp_path, ""), command=(sys.executable, "-c", HELD), starts_own_ranks=True)


def test_a_thread_that_never_ends_is_ended_and_the_trial_is_sound(job, launcher, monkeypatch):
    monkeypatch.setattr(watch, "GRACE_SECONDS", 1.0)
    ending = carry_out(launcher, job, TrialLimits(trial=HANG_GUARD_SECONDS, silence=HANG_GUARD_SECONDS))
    assert ending.cause is EndCause.LINGERED
    assert left_running(job) == []
    judgement = outcome_of(ending, {0: ""})
    assert judgement.outcome is Outcome.OK and "a thread or an exit handler" in judgement.detail


def told(job, *ranks):
    for rank in ranks:
        (job.folder / "events" / f"told-to-end-rank{rank}").write_text("told")


def test_the_grace_begins_once_every_rank_was_told(job):
    for rank in range(2):
        (job.folder / "events" / f"observed-pytorch-rank{rank}.jsonl").touch()
    watched, now = Lingering(job, None), time.monotonic()
    told(job, 0)
    assert not any(watched.is_over(now + seconds) for seconds in (0, 50))
    told(job, 1)
    assert [watched.is_over(now + seconds) for seconds in (100, 105, 100 + GRACE_SECONDS + 1)] == [
        False,
        False,
        True,
    ]


def test_who_saves_a_checkpoint_is_not_cut_short(job, tmp_path, monkeypatch):
    monkeypatch.setattr(watch, "descendants", lambda pid: [os.getpid()])
    told(job, 0)
    watched = Lingering(job, 1)
    for look in range(3):
        (tmp_path / "checkpoint").write_bytes(bytes(SAVING_BYTES))
        assert not watched.is_over(100.0 * look + 100.0)
    assert watched.is_over(500.0)


def test_a_program_of_a_workload_is_never_taken_for_one_that_lingers(job):
    told(job, 0)
    watched = Lingering(replace(job, starts_own_ranks=False), None)
    assert not any(watched.is_over(seconds) for seconds in (100.0, 500.0))
