"""What a child has started ends with it and with Trainmark, however Trainmark ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import trainmark
from trainmark.launch.agent.ranks import processes_with_mark
from trainmark.machine.child_process import run

CHILD = "sleep 300 & sh -c 'sleep 300; true' & echo started; wait"
# A shell's job in the background, as a test run may be, leaves SIGINT ignored.
PARENT = f"""
import signal
import sys
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path.insert(0, {str(Path(trainmark.__file__).parents[1])!r})
from trainmark.machine.child_process import run
run(["sh", "-c", {CHILD!r}], lambda line: print(line, flush=True))
"""
GRANDCHILDREN = 3


def survivors(mark: str) -> list[int]:
    """Return the marked processes that are left after at most five seconds."""
    deadline = time.monotonic() + 5
    while (pids := processes_with_mark(mark)) and time.monotonic() < deadline:
        time.sleep(0.02)
    return pids


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_killed_parent_leaves_no_child_and_no_grandchild(number):
    mark = f"TRAINMARK_TEST_FAMILY={os.getpid()}-{number}"
    name, _, value = mark.partition("=")
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT],
        env={**os.environ, name: value},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with parent:
        assert parent.stdout.readline() == "started\n"
        family = processes_with_mark(mark)
        parent.send_signal(number)
        parent.wait(timeout=30)
    assert len(family) > GRANDCHILDREN
    assert survivors(mark) == []


def test_a_child_that_ends_takes_what_it_left_running_with_it(monkeypatch):
    mark = f"TRAINMARK_TEST_FAMILY={os.getpid()}-end"
    monkeypatch.setenv(*mark.split("=", 1))
    lines: list[str] = []
    assert run(["sh", "-c", "sleep 300 & echo started"], lines.append).code == 0
    assert lines == ["started"]
    assert survivors(mark) == []
