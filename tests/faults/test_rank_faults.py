"""A rank that dies, hangs, prints garbage or runs out of memory: the right outcome, and nothing left."""

import importlib.util
import os
import signal
import socket

import pytest

needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="PyTorch is not installed; pip install '.[pytorch]'"
)
TWO_RANKS = {"topology": "1n2g", "limits": {"silence": "120s"}}
TINY_RESNET = {"image_size": 32, "batch_per_device": 2, "warmup": {"steps": 1}, "measure": {"steps": 2}}


def test_a_rank_killed_from_outside_is_a_crash_of_that_rank_and_not_retried(trainmark):
    trainmark.hold.touch()
    trainmark.program(**TWO_RANKS)
    process = trainmark.start("run", "suite.yaml")
    trainmark.wait_for_steps(repeat=1, rank=1)
    for pid in trainmark.rank_pids(1):
        os.kill(pid, signal.SIGKILL)
    assert trainmark.finish(process).code == 1
    trial = trainmark.trial()
    assert (trial["outcome"], trial["retries"]) == ("crashed", 0)
    assert trial["detail"].startswith("rank 1 was ended by SIGKILL")
    assert trial["seconds"] < 30


def test_a_rank_that_kills_itself_ends_the_trial_in_seconds(trainmark):
    trainmark.hold.touch()
    trainmark.program("if rank == 1 and step == 5: os.kill(os.getpid(), signal.SIGSEGV)", **TWO_RANKS)
    assert trainmark.run().code == 1
    trial = trainmark.trial()
    assert trial["outcome"] == "crashed" and trial["detail"].startswith("rank 1 was ended by SIGSEGV")
    assert trial["seconds"] < 30


def test_the_last_words_of_a_crashed_rank_are_shown_without_what_a_terminal_would_obey(trainmark):
    trainmark.program(r"if step == 5: sys.exit('\x1b]0;evil\x07\x1b[2Jbad\x08 \x9b31mluck')")
    trainmark.run()
    detail = trainmark.trial()["detail"]
    assert detail.startswith("rank 0 left with exit code 1: ") and detail.isprintable()


@needs_torch
def test_a_killed_rank_of_a_real_training_is_named_though_its_peer_loses_the_connection(trainmark):
    trainmark.suite(**TWO_RANKS, **{**TINY_RESNET, "measure": {"steps": 10_000}})
    process = trainmark.start("run", "suite.yaml")
    trainmark.wait_for_steps(repeat=1, rank=1)
    for pid in trainmark.rank_pids(1):
        os.kill(pid, signal.SIGKILL)
    assert trainmark.finish(process).code == 1
    trial = trainmark.trial()
    assert (trial["outcome"], trial["retries"]) == ("crashed", 0)
    assert trial["detail"].startswith("rank 1 was ended by SIGKILL")


@pytest.mark.parametrize("hang", ["time.sleep(600)", "os.kill(os.getpid(), signal.SIGSTOP)"])
def test_a_rank_that_hangs_is_found_and_named(trainmark, hang):
    trainmark.hold.touch()
    trainmark.program(
        f"if rank == 1 and step == 20: {hang}", topology="1n2g", limits={"silence": "4s", "trial": "120s"}
    )
    assert trainmark.run().code == 1
    trial = trainmark.trial()
    assert (trial["outcome"], trial["retries"]) == ("hung", 0)
    assert "rank 1" in trial["detail"]


def test_a_hung_rank_shows_where_it_stands_in_its_log(trainmark):
    trainmark.program("if step == 20: time.sleep(600)", limits={"silence": "4s"})
    trainmark.run()
    assert "program.py" in (trainmark.place("01") / "logs" / "rank0.log").read_text()


def test_a_trial_past_its_limit_is_a_timeout(trainmark):
    trainmark.hold.touch()
    trainmark.program(limits={"trial": "3s"})
    assert trainmark.run().code == 1
    assert trainmark.trial()["outcome"] == "timeout"


def test_a_flood_of_bytes_leaves_the_figure_intact_and_the_log_whole(trainmark):
    trainmark.program("sys.stdout.buffer.write(bytes(range(256)) * 1000)")
    assert trainmark.run().code == 0
    assert trainmark.trial()["outcome"] == "ok"
    assert (trainmark.place("01") / "logs" / "rank0.log").read_bytes() == bytes(range(256)) * 1000 * 30


@pytest.mark.parametrize(
    "garbage",
    [
        rb"\xff\x00 garbage",
        b"[1, 2, 3]",
        b'{"event": "surprise"}',
        b'{"event": "step", "rank": 0, "step": "five", "mono": [], "samples": {}}',
        b'{"event": "step", "rank": 0, "step": 1e3, "mono": NaN, "samples": -1}',
        b'{"event": "step", "rank": 0, "step": 1%s, "mono": 1%s, "samples": 1}' % (b"0" * 30, b"0" * 400),
        b'{"event": "run_start", "rank": 0, "world_size": 1, "scope": "galaxy"}',
    ],
)
def test_garbage_among_the_events_makes_the_trial_invalid(trainmark, garbage):
    trainmark.program(f"if step == 5: open(events, 'ab').write({garbage!r} + b'\\n')")
    assert trainmark.run().code == 1
    trial = trainmark.trial()
    assert (trial["outcome"], trial["retries"]) == ("invalid", 0)


def test_a_program_that_emits_nothing_is_invalid_and_told_what_to_do(trainmark):
    trainmark.suite(workload={"name": "silent", "command": "echo hello"})
    assert trainmark.run().code == 1
    trial = trainmark.trial()
    assert trial["outcome"] == "invalid" and "trainmark.probe" in trial["detail"]


@pytest.mark.parametrize(
    "every_step",
    [
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (1 << 28, 1 << 28)); bytearray(1 << 30)",
        "sys.exit('RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB')",
    ],
    ids=["real", "told"],
)
def test_a_case_out_of_memory_is_not_retried_and_given_up_after_two_trials(trainmark, every_step):
    trainmark.program(every_step, repeats=5, retries=3)
    assert trainmark.run().code == 1
    assert [(t["outcome"], t["retries"]) for t in trainmark.trials()] == [("oom", 0), ("oom", 0)]


@needs_torch
def test_a_real_training_that_does_not_fit_is_out_of_memory(trainmark):
    # More bytes than an address can name: refused however the host overcommits.
    trainmark.suite(image_size=224, batch_per_device=10**9)
    assert trainmark.run().code == 1
    assert trainmark.trial()["outcome"] == "oom"


@needs_torch
def test_a_port_that_is_taken_costs_one_recorded_retry(trainmark):
    trainmark.suite(**TWO_RANKS, **TINY_RESNET)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = trainmark.run("--port", str(taken.getsockname()[1]))
    assert done.code == 0, done.errors
    trial = trainmark.trial()
    assert (trial["outcome"], trial["retries"]) == ("ok", 1)
    assert "in use" in (trainmark.place("01.crashed-1") / "logs" / "rank0.log").read_text()


def test_a_transient_end_is_retried_once_and_its_attempt_kept(trainmark):
    trainmark.program(
        """
        if not Path("second").exists():
            Path("second").touch()
            sys.exit("bind: Address already in use")
        """
    )
    assert trainmark.run().code == 0
    assert trainmark.trial()["retries"] == 1
    assert "in use" in (trainmark.place("01.crashed-1") / "logs" / "rank0.log").read_text()


def test_a_transient_end_that_stays_is_a_crash_after_the_allowed_retries(trainmark):
    trainmark.program("sys.exit('bind: Address already in use')", retries=2)
    assert trainmark.run().code == 1
    trial = trainmark.trial()
    assert (trial["outcome"], trial["retries"]) == ("crashed", 2)


def test_an_ordinary_crash_is_not_retried(trainmark):
    trainmark.program("raise ValueError('wrong from the start')", retries=3)
    assert trainmark.run().code == 1
    trial = trainmark.trial()
    assert (trial["outcome"], trial["retries"]) == ("crashed", 0)
    assert "wrong from the start" in trial["detail"]
