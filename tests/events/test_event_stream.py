"""Events as JSON lines: nothing is lost on the way, and garbage is named."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainmark.events import DeviceSample, Mark, RunEnd, RunStart, Scope, Step
from trainmark.events.stream import MARKS, StreamError, decode, encode, read, write

NUMBER = st.floats(allow_nan=False, allow_infinity=False)
SOMETIMES = st.none() | NUMBER
RANK = st.integers(0, 10**6)
FACTS = st.dictionaries(st.text(), st.none() | st.booleans() | NUMBER | st.text() | st.lists(st.integers()))
EVENTS = {
    "run_start": st.builds(
        RunStart, RANK, st.integers(1, 10**6), SOMETIMES, SOMETIMES, st.text(), st.sampled_from(Scope), FACTS
    ),
    "step": st.builds(
        Step, RANK, st.integers(0), SOMETIMES, SOMETIMES, SOMETIMES, SOMETIMES, SOMETIMES, SOMETIMES,
        st.none() | st.integers(0),
    ),
    "mark": st.builds(Mark, st.sampled_from(sorted(MARKS)), RANK, SOMETIMES, SOMETIMES, FACTS),
    "device_sample": st.builds(
        DeviceSample, st.text(), NUMBER, NUMBER, SOMETIMES, st.none() | st.integers(0), SOMETIMES, SOMETIMES,
        SOMETIMES, SOMETIMES, st.lists(st.text()).map(tuple), st.integers(0), SOMETIMES,
    ),
    "run_end": st.builds(RunEnd, RANK, SOMETIMES, SOMETIMES, FACTS),
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
        ('{"event": "run_start", "rank": 0, "world_size": 1, "scope": "all"}', "incomplete run_start event"),
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
def test_nothing_but_a_stream_error_comes_of_any_json(name, found):
    try:
        decode(json.dumps({**found, "event": name}))
    except StreamError as error:
        assert str(error)
