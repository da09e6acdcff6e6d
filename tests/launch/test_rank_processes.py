"""Ranks are started in their place, their ends are reported, and nothing of them is left."""

import os
import signal
import subprocess
import sys

import pytest
from small_jobs import PATIENT, alive, carry_out, left_running, python_job, wait_for

from trainmark.launch.job import Job
from trainmark.launch.launcher import LocalLauncher
from trainmark.launch.outcome import EndCause
from trainmark.launch.watch import watch

SLEEP = "time.sleep(600)"
STUBBORN = """
    import signal
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    open(folder + f"/ready{rank}", "w").close()
    time.sleep(600)
"""
DAEMON = """
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            open(folder + "/daemon.part", "w").write(str(os.getpid()))
            os.rename(folder + "/daemon.part", folder + "/daemon")
            time.sleep(600)
        os._exit(0)
    while not os.path.exists(folder + "/daemon"):
        time.sleep(0.01)
"""


def ready(job):
    wait_for(lambda: all((job.folder / f"ready{r}").exists() for r in range(job.world_size)), "the ranks")


def test_each_rank_is_told_its_place(tmp_path, launcher):
    job = python_job(
        tmp_path,
        """
        names = "RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE NODE_RANK MASTER_ADDR".split()
        print(*(os.environ[name] for name in names))
        """,
        ranks=2,
    )
    carry_out(launcher, job)
    assert [job.log(rank).read_text() for rank in range(2)] == [
        "0 0 2 2 0 127.0.0.1\n",
        "1 1 2 2 0 127.0.0.1\n",
    ]


def test_all_ranks_are_told_the_same_port(tmp_path, launcher):
    job = python_job(tmp_path, "print(os.environ['MASTER_PORT'])", ranks=2)
    carry_out(launcher, job)
    assert job.log(0).read_text() == job.log(1).read_text() != ""


def test_a_wanted_port_is_given_to_the_first_job_only(tmp_path):
    launcher, ports = LocalLauncher(first_port=23456), []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        job = python_job(tmp_path / name, "print(os.environ['MASTER_PORT'])")
        carry_out(launcher, job)
        ports.append(job.log(0).read_text())
    assert ports[0] == "23456\n" != ports[1]


def test_the_job_s_own_variables_reach_the_ranks(tmp_path, launcher):
    job = python_job(tmp_path, "print(os.environ['TASTE'])", TASTE="salt & 'pepper'")
    carry_out(launcher, job)
    assert job.log(0).read_text() == "salt & 'pepper'\n"


def test_a_rank_can_be_interrupted_as_outside_the_harness(tmp_path, launcher):
    job = python_job(tmp_path, "import signal; os.kill(os.getpid(), signal.SIGINT)")
    assert carry_out(launcher, job).exits == {0: -signal.SIGINT}


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("sys.exit(0)", 0),
        ("sys.exit(7)", 7),
        ("os.abort()", -signal.SIGABRT),
        ("os.kill(os.getpid(), 9)", -signal.SIGKILL),
    ],
)
def test_exit_codes_and_signals_are_reported(tmp_path, launcher, script, code):
    assert carry_out(launcher, python_job(tmp_path, script)).exits == {0: code}


def test_no_exit_is_lost_when_many_ranks_leave_at_once(tmp_path, launcher):
    job = Job(("true",), {}, tmp_path, tmp_path, nodes=1, ranks_per_node=32)
    assert carry_out(launcher, job).exits == dict.fromkeys(range(32), 0)


def test_one_dead_rank_ends_the_others_and_is_named(tmp_path, launcher):
    job = python_job(tmp_path, "sys.exit(5) if rank == 1 else time.sleep(600)", ranks=3)
    ending = carry_out(launcher, job)
    assert (ending.cause, ending.culprit, ending.exits[1]) == (EndCause.RANK_FAILED, 1, 5)
    assert left_running(job) == []


def test_the_first_rank_to_die_is_blamed_though_a_helper_holds_its_output_open(tmp_path, launcher):
    job = python_job(
        tmp_path,
        """
        import subprocess
        if rank == 1:
            subprocess.Popen(["sleep", "600"])
            open(folder + "/dead", "w").close()
            os.kill(os.getpid(), 9)
        while not os.path.exists(folder + "/dead"):
            time.sleep(0.001)
        time.sleep(0.05)
        sys.exit(1)
        """,
        ranks=2,
    )
    assert carry_out(launcher, job).culprit == 1


def test_a_rank_that_ignores_the_polite_signal_is_ended_all_the_same(tmp_path, launcher):
    job = python_job(tmp_path, STUBBORN, ranks=2)
    session = launcher.start(job)
    ready(job)
    session.stop()
    assert left_running(job) == []


def test_a_daemon_that_outlives_its_rank_is_ended(tmp_path, launcher):
    job = python_job(tmp_path, DAEMON)
    assert carry_out(launcher, job).exits == {0: 0}
    assert not alive(int((tmp_path / "daemon").read_text()))


def test_a_daemon_is_ended_with_a_job_that_is_stopped(tmp_path, launcher):
    job = python_job(tmp_path, DAEMON + "    time.sleep(600)\n")
    carry_out(launcher, job, stop_asked=(tmp_path / "daemon").exists)
    assert left_running(job) == []


def test_stopping_twice_is_as_good_as_once(tmp_path, launcher):
    session = launcher.start(python_job(tmp_path, SLEEP))
    session.stop()
    session.stop()


def test_stopping_a_job_that_is_over_is_fine(tmp_path, launcher):
    session = launcher.start(python_job(tmp_path, ""))
    while not session.exits(30.0):
        pass
    session.stop()
    assert not session.lost()


def test_killing_the_agent_ends_the_trial_and_leaves_no_rank(tmp_path, launcher):
    job = python_job(tmp_path, STUBBORN, ranks=2)
    session = launcher.start(job)
    ready(job)
    os.kill(session.root_pid, signal.SIGKILL)
    while not session.lost():
        session.exits(1.0)
    session.stop()
    assert left_running(job) == []


def test_killing_the_agent_leaves_no_daemon_of_a_rank_either(tmp_path, launcher):
    job = python_job(tmp_path, DAEMON + "    time.sleep(600)\n")
    session = launcher.start(job)
    wait_for((tmp_path / "daemon").exists, "the daemon")
    os.kill(session.root_pid, signal.SIGKILL)
    session.stop()
    assert left_running(job) == []


def test_the_watch_tells_a_killed_agent_from_a_failed_rank(tmp_path, launcher):
    job = python_job(tmp_path, STUBBORN)
    session = launcher.start(job)
    ready(job)
    os.kill(session.root_pid, signal.SIGKILL)
    ending = watch(session, job, PATIENT, stop_asked=lambda: False, tick=lambda: None)
    assert ending.cause is EndCause.AGENT_LOST


def test_the_agent_asked_to_terminate_takes_its_ranks_along(tmp_path, launcher):
    job = python_job(tmp_path, STUBBORN)
    session = launcher.start(job)
    ready(job)
    os.kill(session.root_pid, signal.SIGTERM)
    while not session.exits(1.0):
        pass
    session.stop()
    assert left_running(job) == []


def test_killing_the_harness_leaves_nothing_running(tmp_path):
    job = python_job(tmp_path, DAEMON + STUBBORN.replace("ready{rank}", "ready0"))
    program = f"""
from pathlib import PosixPath
from trainmark.launch.job import Job
from trainmark.launch.launcher import LocalLauncher
LocalLauncher().start({job!r}).exits(600)
"""
    harness = subprocess.Popen([sys.executable, "-c", program])
    ready(job)
    harness.kill()
    harness.wait()
    wait_for(lambda: not left_running(job), "the agent to end everything")
