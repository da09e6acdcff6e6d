"""Steps read in blocks are the same steps, and an error in one gives the same message."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainmark.events import Mark, RunEnd, RunStart, Step
from trainmark.events.stream import (
    OPTIONAL_STEP_FIELDS,
    StepBlock,
    StreamError,
    read,
    read_ranks,
    step_block,
    write,
)
from trainmark.measure.rank_events import events_by_rank

NUMBERS = {
    name: st.none() | (st.integers(0, 10**6) if name == "memory" else st.floats(0, 1e6))
    for name in OPTIONAL_STEP_FIELDS
}
LOSSES = st.none() | st.floats()
STEPS = st.lists(st.fixed_dictionaries({**NUMBERS, "loss": LOSSES, "lr": LOSSES}), min_size=2, max_size=12)


def rank_of(events):
    return events_by_rank(events)[0]


def columns_of(rank):
    return {
        name: [repr(value) for value in getattr(rank, name)]
        for name in ("numbers", "mono", "wall", "samples", "loss_positions", "losses")
    } | {
        name: [repr(value) for value in getattr(rank, name).first(len(rank.numbers))]
        for name in ("data_wait", "compute", "communication")
    }


@settings(deadline=None)
@given(before=STEPS, after=STEPS)
def test_a_rank_gathered_in_blocks_is_the_one_gathered_step_by_step(tmp_path_factory, before, after):
    folder = tmp_path_factory.mktemp("events")
    steps = [Step(rank=0, step=number, **row) for number, row in enumerate([*before, *after])]
    middle = len(before)
    events = [RunStart(0, 1, 0.0, 0.0), *steps[:middle], Mark("epoch", 0, 1.0, 1.0), *steps[middle:]]
    events.append(RunEnd(0, 1e6, 1e6))
    write(folder / "rank0.jsonl", events)
    in_blocks = list(read_ranks(folder))
    assert any(isinstance(each, StepBlock) for each in in_blocks)
    here, there = rank_of(in_blocks), rank_of(read(folder / "rank0.jsonl"))
    assert columns_of(here) == columns_of(there)
    assert (here.memory or 0, [mark.step for mark in here.marks]) == (
        there.memory or 0,
        [mark.step for mark in there.marks],
    )


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("mono", math.nan), ("mono", math.inf), ("samples", -1), ("samples", "8"), ("memory", 1.5),
        ("loss", 10**400), ("loss", True), ("compute", 10**400), ("data_wait", [1]),
        ("step", None), ("step", -1), ("wall", 1e300),
    ],
)  # fmt: skip
def test_a_number_that_cannot_be_true_is_named_with_its_line(tmp_path, field, value):
    rows = [{"event": "step", "rank": 0, "step": number, "mono": float(number)} for number in range(9)]
    rows[5][field] = value
    assert step_block(rows) is None
    lines = [json.dumps(row) for row in [{"event": "run_start", "rank": 0, "world_size": 1}, *rows]]
    (tmp_path / "rank0.jsonl").write_text("\n".join(lines) + "\n")
    with pytest.raises(StreamError) as in_blocks:
        list(read_ranks(tmp_path))
    with pytest.raises(StreamError) as one_by_one:
        list(read(tmp_path / "rank0.jsonl"))
    assert str(in_blocks.value) == str(one_by_one.value)
    assert str(in_blocks.value).startswith("rank0.jsonl:7: ")


def test_a_step_of_another_rank_is_refused(tmp_path):
    write(
        tmp_path / "rank0.jsonl",
        [RunStart(0, 1, 0.0, 0.0), *(Step(n // 5, n, 1.0, 1.0, 8) for n in range(9))],
    )
    with pytest.raises(StreamError, match="holds an event of rank 1"):
        list(read_ranks(tmp_path))


def test_a_loss_that_is_no_number_stays_in_its_block():
    rows = [{"rank": 3, "step": number, "loss": math.nan} for number in range(4)]
    block = step_block(rows)
    assert block.rank == 3 and np.isnan(block.columns["loss"]).all() and block.columns["mono"] is None
