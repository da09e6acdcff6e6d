"""Programs whose events cannot be true, cannot be read or do not end: one bad trial each, never a bad run."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

# Writes its event file by itself: `start`, `steps` and `end` are good, and each kind spoils something.
PROGRAM = """
import json, os, sys, time
from pathlib import Path

events = Path(os.environ["TRAINMARK_EVENTS"]) / "rank0.jsonl"
now = time.monotonic()
start = {"event": "run_start", "rank": 0, "world_size": 1, "mono": now, "wall": time.time()}
step = {"event": "step", "rank": 0, "samples": 1}
steps = [{**step, "step": n, "mono": now + 0.01 * (n + 1)} for n in range(30)]
end = {"event": "run_end", "rank": 0, "mono": now + 1}

def write(*rows):
    events.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\\n" for row in rows))

KINDS = {
    "good": lambda: write(start, *steps, end),
    "billion-ranks": lambda: write({**start, "world_size": 1_000_000_000}, *steps, end),
    "million-ranks": lambda: write({**start, "world_size": 1_000_000}, *steps, end),
    "infinite-clock": lambda: write(start, *steps[:-1], {**steps[-1], "mono": float("inf")}, end),
    "infinite-start": lambda: write({**start, "mono": float("inf")}, *steps, end),
    "jumping-clock": lambda: write(start, *steps[:-1], {**steps[-1], "mono": now + 1e9}, end),
    "fast-clock": lambda: write(start, *steps[:-1], {**steps[-1], "mono": now + 1e4}, end),
    "negative-samples": lambda: write(start, *steps[:-1], {**steps[-1], "samples": -1e6}, end),
    "infinite-samples": lambda: write(start, *steps[:-1], {**steps[-1], "samples": float("inf")}, end),
    "no-samples": lambda: write(start, *({**step, "samples": 0} for step in steps), end),
    "after-the-end": lambda: write(start, *steps[:20], end, *steps[20:]),
    "long-line": lambda: write(start, *steps, '{"x":"' + "y" * 8_000_000 + '"}', end),
    "other-ranks": lambda: write(start, *({**step, "rank": step["step"]} for step in steps), end),
    "fifo": lambda: os.mkfifo(events),
    "folder": lambda: events.mkdir(),
    "device": lambda: events.symlink_to("/dev/zero"),
}
KINDS[sys.argv[1]]()
"""
REASONS = {
    "billion-ranks": "'world_size' of this run_start event cannot be 1000000000",
    "million-ranks": "999999 of 1000000 ranks never started (missing: 1, 2, 3, 4, 5, 6, 7, 8, …)",
    "infinite-clock": "'mono' of this step event cannot be inf",
    "infinite-start": "'mono' of this run_start event cannot be inf",
    "jumping-clock": "step 29 lasts 1e+09 s",
    "fast-clock": "and the whole trial took",
    "negative-samples": "'samples' of this step event cannot be -1000000.0",
    "infinite-samples": "'samples' of this step event cannot be inf",
    "no-samples": "step 0 trained on no sample",
    "after-the-end": "step 20 of rank 0 comes after its run_end",
    "long-line": "a line is longer than 4 MiB",
    "other-ranks": "rank0.jsonl holds an event of rank 1",
    "fifo": "this is no regular file",
    "folder": "this is no regular file",
    "device": "this is no regular file",
}


@pytest.fixture(scope="module")
def hostile_run(tmp_path_factory):
    """All kinds as the cases of one run, the good one last."""
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "program.py").write_text(PROGRAM)
    cases = [
        {"workload": {"name": kind, "command": f"{{python}} -u program.py {kind}", "unit": "rows"}}
        for kind in (*REASONS, "good")
    ]
    suite = {"device": "cpu", "repeats": 1, "warmup": {"steps": 2}, "measure": {"steps": 10}, "cases": cases}
    (folder / "suite.yaml").write_text(json.dumps(suite))
    ran = trainmark(folder, "run", "suite.yaml", "--name", "hostile")
    assert ran.returncode == 1, ran.stderr
    return folder


def trainmark(folder, *arguments):
    done = subprocess.run(
        [sys.executable, "-m", "trainmark", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


def record(folder, kind):
    (figure,) = (folder / "runs/hostile/trials").glob(f"{kind}*/01/figure.json")
    return json.loads(figure.read_bytes())


@pytest.mark.parametrize("kind", REASONS)
def test_what_cannot_be_true_makes_the_trial_invalid_with_the_reason(hostile_run, kind):
    trial = record(hostile_run, kind)
    assert (trial["outcome"], trial["figure"]) == ("invalid", None)
    assert REASONS[kind] in trial["detail"]


def test_the_good_case_beside_them_has_its_figure(hostile_run):
    assert record(hostile_run, "good")["figure"]["throughput"] == pytest.approx(100, rel=0.01)


@pytest.mark.parametrize(
    "command", [("report", "hostile"), ("run", "--resume", "hostile"), ("show", "hostile")]
)
def test_the_run_can_be_reported_resumed_and_shown(hostile_run, command):
    done = trainmark(hostile_run, *command)
    assert done.returncode in (0, 1) and "nan" not in done.stdout.lower()


PATTERN = textwrap.dedent(
    """
    name: endless
    device: cpu
    repeats: 1
    warmup: {steps: 2}
    measure: {steps: 10}
    limits: {trial: 5s}
    workload:
      name: endless
      command: "{python} -u -c 'print(\\"step \\" + \\"a\\" * 40)'"
      reader: pattern
      pattern: "step (?:a+)+b"
    """
)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_reading_that_takes_for_ever_can_be_interrupted(tmp_path, number):
    """A pattern that backtracks 2⁴⁰ times stands for any input that is slow to read."""
    (tmp_path / "suite.yaml").write_text(PATTERN)
    process = subprocess.Popen(
        [sys.executable, "-m", "trainmark", "run", "suite.yaml", "--name", "endless"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        log = tmp_path / "runs/endless/trials"
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not any(log.glob("*/.01.part/logs/rank0.log")):
            time.sleep(0.05)
        time.sleep(2.0)
        for _ in range(2 if number == signal.SIGINT else 1):
            os.kill(process.pid, number)
            time.sleep(0.2)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
    assert "Traceback" not in errors and process.returncode == 130, errors
    assert list(log.glob("*/01.interrupted-1"))
