"""Events as JSON lines: nothing is lost on the way, and garbage is named."""

from __future__ import annotations

import json
import math
import os
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainmark.events import DeviceSample, Mark, RunEnd, RunStart, Scope, Step, ranges
from trainmark.events.ranges import MOST_RANKS
from trainmark.events.stream import LONGEST_LINE, MARKS, StreamError, decode, encode, read, write

NUMBER = st.floats(allow_nan=False, allow_infinity=False)
RANK = st.integers(0, MOST_RANKS - 1)
FACTS = st.dictionaries(
    st.text().filter(lambda name: name not in ranges.FACTS),
    st.none() | st.booleans() | NUMBER | st.text() | st.lists(st.integers()),
)


@pytest.mark.parametrize(("field", "value"), [("utilisation", 1.5), ("rank", True), ("step", 2.0)])
def test_a_share_above_one_or_a_number_of_another_type_is_outside_its_range(field, value):
    assert not ranges.FIELDS[field].holds(value)


def numbers(field: str) -> st.SearchStrategy[float]:
    """Any number that the field can have."""
    known = ranges.FIELDS[field]
    if known.types == (int,):
        return st.integers(int(known.low), int(known.high))
    return st.floats(known.low, known.high)


def sometimes(*names: str) -> dict[str, st.SearchStrategy[float | None]]:
    return {name: st.none() | numbers(name) for name in names}


TIMES = ("mono", "wall")
NUMBERS_OF_A_STEP = (*TIMES, "samples", "loss", "lr", "data_wait", "memory", "compute", "communication")
READINGS = ("utilisation", "memory_bytes", "power_watts", "temperature_c", "clock_mhz", "clock_max_mhz")
EVENTS = {
    "run_start": st.builds(
        RunStart, rank=RANK, world_size=numbers("world_size"), unit=st.text(), scope=st.sampled_from(Scope),
        facts=FACTS, **sometimes(*TIMES),
    ),
    "step": st.builds(Step, rank=RANK, step=numbers("step"), **sometimes(*NUMBERS_OF_A_STEP)),
    "mark": st.builds(Mark, kind=st.sampled_from(sorted(MARKS)), rank=RANK, facts=FACTS, **sometimes(*TIMES)),
    "device_sample": st.builds(
        DeviceSample, device=st.text(), mono=numbers("mono"), wall=numbers("wall"),
        throttle=st.lists(st.text()).map(tuple), foreign_processes=numbers("foreign_processes"),
        **sometimes(*READINGS, "foreign_share"),
    ),
    "run_end": st.builds(RunEnd, rank=RANK, facts=FACTS, **sometimes(*TIMES)),
}  # fmt: skip
STEP = Step(rank=0, step=3, mono=1.5, wall=2.5, samples=32.0)


@pytest.mark.parametrize("kind", EVENTS)
@settings(deadline=None)
@given(data=st.data())
def test_every_kind_of_event_comes_back_as_it_was(kind, data):
    event = data.draw(EVENTS[kind])
    line = encode(event)
    assert "\n" not in line
    assert decode(line) == event
    assert decode(line.encode()) == event


def test_a_file_holds_its_events_in_their_order(tmp_path):
    events = [RunStart(0, 1, 0.0, 1.0), STEP, Mark("epoch", 0, 2.0, 3.0, {"epoch": 1}), RunEnd(0, 4.0, 5.0)]
    write(tmp_path / "events.jsonl", events)
    assert list(read(tmp_path / "events.jsonl")) == events


@pytest.mark.parametrize("loss", [math.nan, math.inf, -math.inf])
def test_a_loss_that_is_no_number_survives(loss):
    event = decode(encode(Step(0, 0, 1.0, 1.0, 1.0, loss=loss)))
    assert repr(event.loss) == repr(loss)


def test_what_a_newer_writer_adds_is_passed_over():
    assert decode(json.dumps({**json.loads(encode(STEP)), "gradient_norm": [1], "phase": "late"})) == STEP


def test_what_is_absent_or_null_is_unknown():
    assert decode('{"event":"step","rank":0,"step":1}') == Step(0, 1, None, None, None)
    assert decode('{"event":"step","rank":0,"step":1,"mono":null,"loss":null}') == Step(
        0, 1, None, None, None
    )


@pytest.mark.parametrize("cut", range(1, len(encode(STEP))))
def test_a_last_line_cut_short_by_a_killed_writer_is_left_out(tmp_path, cut):
    file = tmp_path / "rank0.jsonl"
    file.write_text(encode(STEP) + "\n" + encode(STEP)[:cut])
    assert list(read(file)) == [STEP]


def test_a_last_line_that_lacks_only_its_newline_counts(tmp_path):
    file = tmp_path / "rank0.jsonl"
    file.write_text(encode(STEP))
    assert list(read(file)) == [STEP]


def test_a_broken_line_in_the_middle_is_an_error_with_its_place(tmp_path):
    file = tmp_path / "rank0.jsonl"
    file.write_text(f"{encode(STEP)}\n{encode(STEP)[:20]}\n{encode(STEP)}\n")
    with pytest.raises(StreamError, match=r"^rank0.jsonl:2: not JSON: "):
        list(read(file))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("", "not JSON"),
        ("\x00\x01", "not JSON"),
        (b"\xff\xfe{}", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[1]", "no event on this line"),
        ('{"step": 1}', "no event on this line"),
        ('{"event": "stepp"}', "unknown event 'stepp'"),
        ('{"event": ["step"]}', "unknown event"),
        ('{"event": {"a": 1}}', "unknown event"),
        ('{"event": null}', "unknown event"),
        ('{"event": "step", "rank": 0}', "incomplete step event"),
        ('{"event": "step", "rank": "0", "step": 1}', "'rank' of this step event cannot be '0'"),
        ('{"event": "step", "rank": 0, "step": 1.5}', "'step' of this step event cannot be 1.5"),
        ('{"event": "step", "rank": 0, "step": 1, "samples": "32"}', "'samples' of this step event cannot"),
        ('{"event": "step", "rank": 0, "step": 1, "loss": true}', "'loss' of this step event cannot be True"),
        ('{"event": "step", "rank": 0, "step": 1, "mono": [1]}', "'mono' of this step event cannot be [1]"),
        (
            '{"event": "run_start", "rank": 0, "world_size": 1, "scope": "all"}',
            "'scope' of this run_start event",
        ),
        ('{"event": "run_start", "rank": 0}', "incomplete run_start event: no 'world_size'"),
        ('{"event": "device_sample", "device": "0", "mono": 1}', "incomplete device_sample event: no 'wall'"),
        ('{"event": "run_end", "rank": 0, "facts": 3}', "'facts' of this run_end event cannot be 3"),
        ('{"event": "device_sample", "device": "0", "mono": 1, "wall": 1, "throttle": 5}', "'throttle' of"),
    ],
    ids=lambda value: ascii(value)[:30],
)
def test_a_line_that_is_no_event_is_refused_with_the_reason(line, reason):
    with pytest.raises(StreamError) as refused:
        decode(line)
    assert reason in str(refused.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
KEYS = st.sampled_from(
    ["rank", "step", "mono", "wall", "samples", "scope", "facts", "throttle", "world_size"]
)


@settings(deadline=None)
@given(
    st.sampled_from(["run_start", "step", "note", "device_sample", "run_end"]) | JSON,
    st.dictionaries(KEYS, JSON),
)
def test_nothing_but_a_stream_error_comes_of_any_json(name, fields):
    try:
        decode(json.dumps({**fields, "event": name}))
    except StreamError as error:
        assert str(error)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("mono", value) for value in ("Infinity", "NaN", "1e999", "1" + "0" * 40)),
        *(("samples", value) for value in ("-1", "Infinity", "NaN", "1" + "0" * 400)),
        *(("step", value) for value in ("-1", "1" + "0" * 30, "1" + "0" * 5000)),
        *(("rank", value) for value in ("-1", "1048576")),
        *(("wall", "-Infinity"), ("data_wait", "-5"), ("compute", "NaN"), ("memory", "-1")),
        ("loss", "1" + "0" * 400),
    ],
)
def test_a_number_that_cannot_be_true_is_refused(field, value):
    step = {"event": '"step"', "rank": "0", "step": "1", "mono": "1.0", field: value}
    line = "{" + ",".join(f'"{name}":{text}' for name, text in step.items()) + "}"
    with pytest.raises(StreamError, match=f"'{field}' of this step event cannot be|not JSON"):
        decode(line)


def test_a_rank_that_claims_a_billion_others_is_refused_before_anything_is_made_of_it():
    with pytest.raises(StreamError, match="'world_size' of this run_start event cannot be 1000000000"):
        decode('{"event":"run_start","rank":0,"world_size":1000000000}')


@pytest.mark.parametrize(
    ("fact", "value"), [("peak_flops", "Infinity"), ("resumed_step", "-3"), ("seconds", "NaN")]
)
def test_a_fact_that_figures_are_computed_from_must_be_possible(fact, value):
    with pytest.raises(StreamError, match=f"the fact '{fact}'"):
        decode(f'{{"event":"run_end","rank":0,"facts":{{"{fact}":{value}}}}}')


def test_a_fact_of_the_users_own_may_bear_a_known_name():
    facts = {"samples": "/data/train", "epoch": None, "target": [1, {}], "seconds": True}
    assert decode(json.dumps({"event": "run_end", "rank": 0, "facts": facts})).facts == facts


def test_a_reading_that_a_driver_got_wrong_is_none_and_the_sample_stays():
    line = '{"event":"device_sample","device":"cuda:0","mono":1,"wall":1,"power_watts":-1,"utilisation":0.5}'
    sample = decode(line)
    assert (sample.power_watts, sample.utilisation) == (None, 0.5)


def test_an_endless_line_is_refused_in_bounded_memory(tmp_path):
    file = tmp_path / "rank0.jsonl"
    with file.open("wb") as out:
        out.write(encode(STEP).encode() + b"\n" + b'{"event":"step","rank":0,"note":"')
        out.truncate(40 * LONGEST_LINE)
    tracemalloc.start()
    try:
        with pytest.raises(StreamError, match="a line is longer than 4 MiB"):
            list(read(file))
        assert tracemalloc.get_traced_memory()[1] < 4 * LONGEST_LINE
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir, lambda path: path.symlink_to("/dev/zero")])
def test_only_a_regular_file_is_read(tmp_path, make):
    make(tmp_path / "rank0.jsonl")
    with pytest.raises(StreamError, match=r"rank0.jsonl cannot be read: this is no regular file"):
        list(read(tmp_path / "rank0.jsonl"))


def test_many_lines_and_each_alone_give_the_same(tmp_path):
    file = tmp_path / "rank0.jsonl"
    steps = [replace(STEP, step=number, loss=math.inf) for number in range(5_000)]
    write(file, steps)
    assert list(read(file)) == steps == [decode(line) for line in file.read_bytes().splitlines()]
