"""The steps behind an export, from streams that do not tell everything."""

from __future__ import annotations

import pytest

from trainmark.events import RunStart, Scope, Step, stream
from trainmark.pages.export.steps import read_steps

STARTED = 1_760_000_000.0


@pytest.fixture
def read(tmp_path):
    def written(*ranks):
        files = [tmp_path / f"rank{number}.jsonl" for number, _ in enumerate(ranks)]
        for file, events in zip(files, ranks, strict=True):
            stream.write(file, events)
        return read_steps(files, STARTED)

    return written


def test_steps_of_several_ranks_are_summed_and_end_with_the_last(read):
    steps = read(
        [RunStart(0, 2, 10.0, 1010.0), Step(0, 0, 11.0, 1011.0, 4, memory=9, lr=0.5)],
        [RunStart(1, 2, 10.0, 1010.0), Step(1, 0, 12.0, 1012.0, 4, memory=7, lr=0.7)],
    )
    (row,) = steps.rows
    assert (steps.start, row.wall, row.seconds, row.samples) == (1010.0, 1012.0, 2.0, 8.0)
    assert (row.rate, row.memory, row.lr, row.loss) == (4.0, 9, 0.5, None)


def test_a_stream_without_wall_times_begins_when_the_trial_did(read):
    steps = read([RunStart(0, 1, 10.0, None), Step(0, 0, 11.5, None, 4)])
    assert (steps.start, steps.end) == (STARTED, STARTED + 1.5)


def test_without_a_time_of_the_start_the_first_step_only_serves_as_start(read):
    log = [Step(0, number, None, 1000.0 + number, 4, loss=9.0 - number) for number in (5, 6, 7)]
    steps = read([RunStart(0, 1, None, None, scope=Scope.GLOBAL), *log])
    assert steps.start == 1005.0
    assert [(row.number, row.wall, row.loss) for row in steps.rows] == [(6, 1006.0, 3.0), (7, 1007.0, 2.0)]


def test_a_step_in_which_the_clock_stood_still_has_no_rate(read):
    steps = read([RunStart(0, 1, 10.0, 1010.0), Step(0, 0, 11.0, 1011.0, 4), Step(0, 1, 11.0, 1011.0, 4)])
    assert [row.rate for row in steps.rows] == [4.0, None]
