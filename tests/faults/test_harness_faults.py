"""The harness killed, interrupted, out of disk or started twice: finished trials stay, and it can go on."""

import signal

import pytest


def finished(trainmark):
    """What must not change once a trial is finished."""
    states = {path: path.stat() for path in trainmark.runs.glob("*/trials/*/[0-9][0-9]/figure.json")}
    return {path: (state.st_ino, state.st_mtime_ns) for path, state in states.items()}


def outcomes(trainmark):
    return [trial["outcome"] for trial in trainmark.trials()]


def held_in_trial_two(trainmark):
    """A run of three trials, of which the first is finished and the second goes on and on."""
    trainmark.program("if repeat == 2 and step == 0: Path('hold').touch()", repeats=3)
    process = trainmark.start("run", "suite.yaml")
    trainmark.wait_for_steps(repeat=2)
    trainmark.wait_for(trainmark.hold.exists, "the second trial")
    return process


def let_go(trainmark):
    trainmark.program(repeats=3)
    trainmark.hold.unlink()


def assert_resumes_to_the_end(trainmark, before):
    let_go(trainmark)
    assert trainmark.resume().code == 0
    assert outcomes(trainmark) == ["ok", "ok", "ok"]
    assert before and before.items() <= finished(trainmark).items()


def test_a_killed_harness_leaves_no_rank_and_resumes_without_repeating_what_is_finished(trainmark):
    process = held_in_trial_two(trainmark)
    process.kill()
    process.communicate()
    trainmark.wait_until_gone()
    before = finished(trainmark)
    assert_resumes_to_the_end(trainmark, before)
    assert (trainmark.place("02.interrupted-1") / "logs" / "rank0.log").exists()
    assert trainmark.shown()["status"] == "finished"


def read_until(process, text):
    """Before it the lines of trials may come, and that of a busy host."""
    assert any(text in line for line in iter(process.stderr.readline, ""))


def test_ctrl_c_once_finishes_the_trial_and_stops(trainmark):
    process = held_in_trial_two(trainmark)
    process.send_signal(signal.SIGINT)
    read_until(process, "finishing this trial")
    let_go(trainmark)
    done = trainmark.finish(process)
    assert (done.code, outcomes(trainmark)) == (130, ["ok", "ok"])
    assert "--resume" in done.errors
    before = finished(trainmark)
    assert trainmark.resume().code == 0
    assert outcomes(trainmark) == ["ok", "ok", "ok"] and before.items() <= finished(trainmark).items()


def test_ctrl_c_in_the_last_trial_interrupts_nothing(trainmark):
    trainmark.hold.touch()
    trainmark.program()
    process = trainmark.start("run", "suite.yaml")
    trainmark.wait_for_steps(repeat=1)
    process.send_signal(signal.SIGINT)
    read_until(process, "finishing this trial")
    trainmark.hold.unlink()
    done = trainmark.finish(process)
    assert done.code == 0 and "--resume" not in done.errors


def test_ctrl_c_twice_stops_now_and_keeps_the_attempt(trainmark):
    process = held_in_trial_two(trainmark)
    process.send_signal(signal.SIGINT)
    read_until(process, "finishing this trial")
    process.send_signal(signal.SIGINT)
    assert trainmark.finish(process).code == 130
    assert outcomes(trainmark) == ["ok"]
    assert (trainmark.place("02.interrupted-1") / "logs" / "rank0.log").exists()
    assert_resumes_to_the_end(trainmark, finished(trainmark))


def test_a_request_to_terminate_stops_now(trainmark):
    process = held_in_trial_two(trainmark)
    process.terminate()
    assert trainmark.finish(process).code == 130
    assert outcomes(trainmark) == ["ok"]
    assert_resumes_to_the_end(trainmark, finished(trainmark))


def test_a_hangup_does_not_stop_a_run_started_with_nohup(trainmark):
    trainmark.hold.touch()
    trainmark.program()
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        process = trainmark.start("run", "suite.yaml")
    finally:
        signal.signal(signal.SIGHUP, before)
    trainmark.wait_for_steps(repeat=1)
    process.send_signal(signal.SIGHUP)
    trainmark.hold.unlink()
    assert trainmark.finish(process).code == 0


def test_a_second_harness_on_the_same_run_is_refused(trainmark):
    process = held_in_trial_two(trainmark)
    second = trainmark.start("run", "--resume")
    assert "being run by another trainmark" in second.communicate()[1]
    assert second.returncode == 2
    let_go(trainmark)
    assert trainmark.finish(process).code == 0
    assert outcomes(trainmark) == ["ok", "ok", "ok"]


def test_a_second_harness_cannot_set_failed_trials_of_a_running_one_aside(trainmark):
    trainmark.program("if repeat == 1: sys.exit(1)\nif step == 0: Path('hold').touch()", repeats=2)
    process = trainmark.start("run", "suite.yaml")
    trainmark.wait_for_steps(repeat=2)
    second = trainmark.start("run", "--resume", "--retry-failed")
    assert "being run by another trainmark" in second.communicate()[1]
    assert trainmark.place("01").exists()
    trainmark.hold.unlink()
    assert trainmark.finish(process).code == 1


@pytest.mark.parametrize(
    "in_trial_two",
    [
        "sys.stdout.buffer.write(bytes(1 << 21))",
        "(events.parents[4] / 'ballast').open('ab').write(bytes(1 << 21))",
    ],
    ids=["by-the-log", "by-another-file"],
)
def test_a_full_disk_stops_the_run_and_room_lets_it_go_on(trainmark, small_disk, in_trial_two):
    trainmark.program(f"if repeat == 2: {in_trial_two}", repeats=3)
    done = trainmark.run("--name", "full")
    assert done.code == 1
    lines = done.errors.splitlines()
    (sentence,) = [line for line in lines if not line.startswith(("[", "Other processes", "about "))]
    assert "No space left on device" in sentence and "--resume" in sentence
    before = finished(trainmark)
    assert len(before) == 1
    for large in [*small_disk.rglob("ballast"), *small_disk.rglob("*.log")]:
        large.unlink()
    trainmark.program(repeats=3)
    assert trainmark.resume().code == 0
    assert outcomes(trainmark) == ["ok", "ok", "ok"] and before.items() <= finished(trainmark).items()


def test_repeats_end_when_the_interval_is_tight_and_go_on_while_it_is_not(trainmark):
    # Steps end when the plan says, not when a busy machine lets them: the spread is the one asked for.
    trainmark.program("""
        first = time.monotonic() if step == 0 else first
        pace = 0.004 * (1 + repeat % 2 * float(os.environ['SPREAD']))
        end_of_step = lambda: first + pace * (step + 1)
    """)
    command = "SPREAD={} {{python}} -u program.py"
    steady = {"workload": {"name": "steady", "command": command.format(0)}}
    noisy = {"workload": {"name": "noisy", "command": command.format(4)}}
    trainmark.suite(cases=[
        {**steady, "repeats": {"min": 2, "max": 9, "until": "±90%"}},
        {**noisy, "repeats": {"min": 2, "max": 9, "until": "±1%"}},
    ])  # fmt: skip
    assert trainmark.run().code == 0
    repeats = [trial["workload"] for trial in trainmark.trials()]
    assert (repeats.count("steady"), repeats.count("noisy")) == (6, 9)
