"""Connections of this machine's commands: what each costs, what it said, and their common end."""

from __future__ import annotations

import time
from pathlib import Path

from small_jobs import HANG_GUARD_SECONDS, wait_for

from trainmark.launch.carrier import PipeChannel, close_together
from trainmark.launch.launcher import PER_NODE

STUBBORN = ("sh", "-c", "trap '' TERM; while :; do sleep 0.2; done")


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_connection_takes_as_many_open_files_as_are_counted_for_it():
    PipeChannel(["cat"]).close()  # the file that all share is made with the first
    before = open_files()
    channels = [PipeChannel(["cat"]) for _ in range(20)]
    descriptors = open_files() - before
    close_together([(channel, True) for channel in channels])
    assert (descriptors, open_files()) == (20 * PER_NODE, before)


def test_the_last_words_of_one_are_not_those_of_another():
    lines = ["echo first >&2; echo one >&2", "seq 20000 >&2; echo two >&2", "true", "printf four >&2"]
    channels = [PipeChannel(["sh", "-c", line]) for line in lines]
    wait_for(lambda: all(channel.ended() for channel in channels), "their end")
    assert [channel.last_words() for channel in channels] == ["one", "two", "", "four"]
    close_together([(channel, True) for channel in channels])


def test_many_that_will_not_end_are_waited_for_together():
    channels = [PipeChannel(STUBBORN) for _ in range(40)]
    began = time.monotonic()
    codes = close_together([(channel, True) for channel in channels], seconds=1.0)
    assert set(codes) == {-9}
    # One after the other it would be 80 s at least.
    assert time.monotonic() - began < HANG_GUARD_SECONDS
