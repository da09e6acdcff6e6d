"""A trial that takes too long, falls silent or is to be stopped is ended, and the right rank blamed."""

import os
import shlex
import time
from dataclasses import replace

import pytest
from small_jobs import HANG_GUARD_SECONDS, carry_out, left_running, printed, python_job, shell_job

from trainmark.launch import watch as watching
from trainmark.launch.job import Exited, NodeLoss
from trainmark.launch.outcome import EndCause
from trainmark.launch.watch import SignsOfLife, TrialLimits, watch

SILENT_AFTER_TWO = TrialLimits(trial=HANG_GUARD_SECONDS, silence=2.0)
STEPPING = """
    from trainmark import probe
    run = probe.start()
    step = 0
    def stuck_here():
        time.sleep(600)
    while True:
        if {hangs} and step == 20:
            stuck_here()
        run.step(samples=1)
        step += 1
        time.sleep(0.02)
"""


def test_a_silent_rank_ends_the_trial_and_is_blamed_while_the_others_go_on(tmp_path, launcher):
    job = python_job(tmp_path, STEPPING.format(hangs="rank == 1"), ranks=3)
    ending = carry_out(launcher, job, SILENT_AFTER_TWO)
    assert (ending.cause, ending.culprit) == (EndCause.SILENT, 1)
    assert left_running(job) == []


def test_a_silent_rank_shows_where_it_stood_in_its_log(tmp_path, launcher):
    job = python_job(tmp_path, STEPPING.format(hangs="True"))
    carry_out(launcher, job, SILENT_AFTER_TWO)
    assert "stuck_here" in job.log(0).read_text()


def test_the_stack_is_shown_from_below_a_shell_too(tmp_path, launcher):
    job = python_job(tmp_path, STEPPING.format(hangs="True"))
    job = replace(job, command=("sh", "-c", f"{shlex.join(job.command)}; exit $?"))
    carry_out(launcher, job, SILENT_AFTER_TWO)
    assert "stuck_here" in job.log(0).read_text()


def test_a_rank_that_takes_steps_for_its_profile_is_not_silent(tmp_path):
    job = python_job(tmp_path, "")
    (tmp_path / "profile").mkdir()
    signs = SignsOfLife(job)
    began = time.monotonic()
    assert not signs.any_silent([0], began, allowed=10)
    job.profile_progress(0).write_text(".")
    assert not signs.any_silent([0], began + 20, allowed=10)
    assert signs.any_silent([0], began + 40, allowed=10)


@pytest.mark.parametrize(
    ("stopped_at", "culprit"),
    [
        ([1000.0], 0),
        ([1000.0, 990.0, 1000.1], 1),
        ([1000.2, 1000.0], None),  # no further apart than the probe holds events back
        ([990.0, 990.0, 1000.0], None),
    ],
)
def test_only_a_rank_clearly_behind_all_others_is_blamed(tmp_path, stopped_at, culprit):
    job = python_job(tmp_path, "", ranks=len(stopped_at))
    (tmp_path / "events").mkdir()
    for rank, seconds in enumerate(stopped_at):
        job.events(rank).touch()
        os.utime(job.events(rank), (seconds, seconds))
    assert SignsOfLife(job).slowest(list(range(len(stopped_at)))) == culprit


def test_a_rank_that_never_emitted_is_behind_one_that_did(tmp_path, launcher):
    script = "    if rank == 0: time.sleep(600)\n" + STEPPING.format(hangs="True")
    ending = carry_out(launcher, python_job(tmp_path, script, ranks=2), SILENT_AFTER_TWO)
    assert (ending.cause, ending.culprit) == (EndCause.SILENT, 0)


def test_a_program_that_only_prints_is_not_silent(tmp_path, launcher):
    job = shell_job(tmp_path, "for n in 1 2 3 4 5 6 7 8; do echo $n; sleep 0.5; done")
    assert carry_out(launcher, job, SILENT_AFTER_TWO).cause is EndCause.FINISHED


def test_a_trial_past_its_limit_is_ended(tmp_path, launcher):
    job = shell_job(tmp_path, "while true; do echo busy; sleep 0.1; done")
    ending = carry_out(launcher, job, TrialLimits(trial=2.0, silence=HANG_GUARD_SECONDS))
    assert ending.cause is EndCause.TIME_UP and ending.seconds >= 2.0
    assert left_running(job) == []


def test_a_trial_is_stopped_when_asked(tmp_path, launcher):
    job = shell_job(tmp_path, "echo ready; sleep 600")
    ending = carry_out(launcher, job, stop_asked=lambda: printed(job, b"ready\n"))
    assert ending.cause is EndCause.STOPPED
    assert left_running(job) == []


def test_an_error_while_watching_leaves_nothing_running(tmp_path, launcher):
    job = shell_job(tmp_path, "sleep 600")

    def broken():
        raise RuntimeError("the display broke")

    with pytest.raises(RuntimeError, match="the display broke"):
        carry_out(launcher, job, stop_asked=broken)
    assert left_running(job) == []


class TwoNodes:
    """A session whose first rank falls at once, and whose other node is found to be gone a while later."""

    root_pid = None

    def __init__(self, gone_after):
        self.began, self.gone_after = time.monotonic(), gone_after
        self.pending = [Exited(0, 1)]

    def exits(self, timeout):
        time.sleep(timeout)
        ended, self.pending = self.pending, []
        return ended

    def node_of(self, rank):
        return f"node{rank}"

    def lost(self):
        gone = time.monotonic() - self.began > self.gone_after
        return NodeLoss("node1", "its connection was lost") if gone else None

    def doubtful(self):
        return False

    def stop(self):
        pass


class FallingOneByOne(TwoNodes):
    """A session whose ranks fall in this order, with what the kernel had killed by then."""

    def __init__(self, *exits):
        super().__init__(gone_after=HANG_GUARD_SECONDS)
        self.pending = list(exits)

    def exits(self, timeout):
        return [self.pending.pop(0)] if self.pending else []


def test_the_first_rank_to_fall_is_blamed_and_every_kill_for_want_of_memory_counted(tmp_path):
    session = FallingOneByOne(Exited(1, 9, oom_kills=2), Exited(0, 7, oom_kills=1))
    ending = watch(session, python_job(tmp_path, "", ranks=2), TrialLimits(), lambda: False, lambda: None)
    assert (ending.culprit, ending.exits, ending.oom_kills) == (1, {0: 7, 1: 9}, 2)


@pytest.mark.parametrize(
    ("log_text", "cause"),
    [("connection closed by peer", EndCause.NODE_LOST), ("ValueError: no", EndCause.RANK_FAILED)],
)
def test_a_rank_that_lost_its_peer_is_not_blamed_before_the_peers_node_is_missed(tmp_path, log_text, cause):
    job = python_job(tmp_path, "", ranks=2)
    job.log(0).parent.mkdir(exist_ok=True)
    job.log(0).write_text(log_text)
    ending = watch(TwoNodes(gone_after=4.0), job, TrialLimits(), lambda: False, lambda: None)
    assert ending.cause is cause


def test_files_are_looked_at_no_more_often_than_the_silence_allowed_needs(tmp_path, monkeypatch):
    looked = []
    monkeypatch.setattr(watching, "_size", lambda path: looked.append(path) or 0)
    signs = SignsOfLife(python_job(tmp_path, "", ranks=3))
    began = time.monotonic()
    for tick in range(600):  # two minutes of ticks
        signs.any_silent(range(3), began + tick * watching.TICK_SECONDS, allowed=300.0)
    assert 0 < len(looked) <= 3 * 2 * (120 / watching.LOOK_SECONDS + 1)
