"""Waiting for a quiet machine: what is said meanwhile, and that it ends."""

import time

import pytest

from trainmark.runner.quiet import QuietWait


@pytest.mark.parametrize("seconds, limit", [(5.0, "5 s at most: make is busy"), (1800.0, "30 min at most")])
def test_a_wait_names_its_limit(seconds, limit):
    looks, notes = iter(["make is busy", "make is busy", ""]), []
    QuietWait(seconds).wait(lambda: next(looks), notes.append, lambda: False)
    assert len(notes) == 1 and limit in notes[0]


def test_the_run_goes_on_once_the_time_is_spent():
    notes = []

    def look():
        time.sleep(0.002)
        return "make is busy"

    QuietWait(0.001).wait(look, notes.append, lambda: False)
    assert [note.partition("; ")[0] for note in notes] == ["make is busy"]
    assert "goes on all the same" in notes[0]
