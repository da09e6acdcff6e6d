"""Broken, truncated, hostile and huge traces: one sentence, no surprise, bounded memory."""

from __future__ import annotations

import gzip
import json
import os
import tracemalloc

import pytest
from builders_trace import annotation, call, kernel, operator, write_trace

from trainmark.base.errors import UserError
from trainmark.explain import chrome_trace, json_stream
from trainmark.explain import json_stream as trace_file
from trainmark.explain.kernel_classes import class_of_name
from trainmark.explain.trace_events import LONGEST_NAME

EVENTS = [
    annotation("ProfilerStep#1", 0, 50),
    operator(
        'aten::mm \u00e9 \\ "x"', 1.5, 2, **{"Input Dims": [[2, 3], []], "Input type": ["float", "Scalar"]}
    ),
    call(2, 5),
    kernel(
        "gemm",
        12.125,
        3,
        correlation=5,
        occupancy=-1.5e-3,
        ok=True,
        none=None,
        rate=float("-inf"),
        face="\U0001f600",
    ),
]


def refusal(path, **limits):
    with pytest.raises(UserError) as error:
        chrome_trace.read(path, **limits)
    sentence = str(error.value)
    assert "\n" not in sentence
    assert len(sentence) < 400 + len(str(path))
    return sentence


def test_json_cut_anywhere_is_known_as_cut_short():
    text = json.dumps({"a": True, "b": EVENTS, "c": [None, False, -1.5e-3]})
    for length in range(len(text)):
        stream = json_stream.JsonStream(iter([text[:length]]))
        with pytest.raises(json_stream.TruncatedError):
            for _ in stream.members():
                if stream.peek() == "[":
                    list(stream.elements())
                else:
                    stream.value()


def test_a_trace_cut_anywhere_is_refused_as_cut_short(tmp_path):
    path = write_trace(tmp_path / "t.json", EVENTS, deviceProperties=[{"id": 0, "name": "x"}], done=True)
    text = path.read_text(encoding="utf-8")
    for length in range(1, len(text), 9):
        path.write_text(text[:length], encoding="utf-8")
        assert "is cut short" in refusal(path), text[:length]


def test_a_gzip_stream_cut_anywhere_is_refused(tmp_path):
    path = tmp_path / "t.json.gz"
    packed = gzip.compress(json.dumps({"traceEvents": EVENTS}).encode())
    for length in range(2, len(packed), 3):
        path.write_bytes(packed[:length])
        assert "cut short" in refusal(path)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it is empty"),
        ("\0\1\2", "it is not JSON"),
        ("12", "it is not JSON"),
        ("{}", "it has no traceEvents"),
        ('{"a": [1, 2]}', "it has no traceEvents"),
        ('{"traceEvents": {}}', "its traceEvents are no list"),
        ('{"traceEvents": []}', "no kernels and no operators"),
        ("[]", "no kernels and no operators"),
        ('{"traceEvents": [1]}', "event 1 is no object but 1"),
        ('{"traceEvents": [{} {}]}', "expected ',' or ']' at character 20"),
        ('{"traceEvents": [{"a" 1}]}', "expecting ':' delimiter at character 22"),
        ('{"traceEvents": [{"a": wrong}], "more": "0123456789abcdef"}', "expected a value at character 23"),
        ('{"traceEvents": [{"a": info}]}', "expected a value at character 23"),
        ('{"traceEvents" []}', "expected ':' at character 15"),
        ("{traceEvents: []}", "expected a name in double quotes at character 1"),
        ('{"traceEvents": []} more', "more text after the end at character 20"),
        ("[" * 100_000, "nested too deeply"),
        ('{"x": ' + '{"x":' * 100_000, "nested too deeply"),
        ('{"x": ' + "1" * 5000 + "}", "a number that cannot be read"),
        ('{"x": 1e99999999999999999999}', "a number that cannot be read"),
    ],
)
def test_what_is_no_sound_trace_is_refused_with_the_place(tmp_path, text, reason):
    path = tmp_path / "t.json"
    path.write_text(text)
    assert reason in refusal(path)


@pytest.mark.parametrize("field", ["ts", "dur"])
@pytest.mark.parametrize(
    "value",
    [
        "-1",
        "-0.001",
        "NaN",
        "Infinity",
        "-Infinity",
        "1e18",
        "1e999999",
        "4" + "0" * 300,
        '"12"',
        "null",
        "true",
        "[]",
    ],
)
def test_a_time_that_cannot_be_is_refused(tmp_path, field, value):
    path = tmp_path / "t.json"
    times = {"ts": "1", "dur": "2", field: value}
    path.write_text(
        f'[{{}}, {{"ph": "X", "cat": "kernel", "name": "k", "ts": {times["ts"]}, "dur": {times["dur"]}}}]'
    )
    sentence = refusal(path)
    assert "event 2 ('k')" in sentence
    assert f"as its {field}" in sentence


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"args": [1]}, "args that are no object"),
        ({"name": 5}, "a name that is no text"),
        ({"name": None}, "a name that is no text"),
        ({"args": {"stream": "seven"}}, "'seven' as its stream"),
        ({"args": {"correlation": 1 << 70}}, "as its correlation"),
        ({"args": {"device": 1.5}}, "1.5 as its device"),
        ({"args": {"bytes": True}}, "True as its bytes"),
        ({"cat": "cpu_op", "args": {"Sequence number": []}}, "[] as its Sequence number"),
        ({"cat": "cpu_op", "tid": {}}, "as pid and tid"),
    ],
)
def test_text_where_numbers_belong_is_refused(tmp_path, change, reason):
    assert reason in refusal(write_trace(tmp_path / "t.json", [{**kernel("k", 1, 2), **change}]))


@pytest.mark.parametrize("shapes", [5, {}, [5], [["a"]], [[-1]], [[1.5]], [[[1, "x"]]], [[1 << 80]], None])
def test_shapes_of_an_unexpected_form_are_passed_over(tmp_path, shapes):
    path = write_trace(tmp_path / "t.json", [operator("aten::mm", 0, 1, **{"Input Dims": shapes})])
    assert dict(chrome_trace.read(path).host.operands) == {}


@pytest.mark.parametrize("category", [5, ["kernel"], {"kernel": 1}, None])
def test_categories_of_an_unexpected_form_are_passed_over(tmp_path, category):
    events = [kernel("k", 1, 2), {**kernel("other", 1, 2), "cat": category}]
    assert len(chrome_trace.read(write_trace(tmp_path / "t.json", events)).spans) == 1


def test_streams_and_threads_with_large_numbers_stay_apart(tmp_path):
    events = [kernel("a", 0, 1, stream=2**32 - 1), kernel("b", 0, 1, stream=2**40)]
    events += [{**operator("o", 0, 1), "tid": tid} for tid in (2**40, 2**41, "a name", 7)]
    profile = chrome_trace.read(write_trace(tmp_path / "t.json", events))
    assert len(set(profile.spans.stream)) == 2
    assert len(set(profile.host.thread)) == 4


def test_a_file_that_is_not_there_is_named(tmp_path):
    assert refusal(tmp_path / "none.json").endswith("none.json cannot be read: No such file or directory.")


def test_a_folder_and_a_pipe_are_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert "cannot be read" in refusal(tmp_path / "pipe")
    assert "cannot be read" in refusal(tmp_path)


def test_a_damaged_gzip_stream_is_refused(tmp_path):
    packed = bytearray(gzip.compress(json.dumps({"traceEvents": EVENTS * 50}).encode()))
    packed[60:90] = bytes(30)
    path = tmp_path / "t.json.gz"
    path.write_bytes(packed)
    assert "is damaged" in refusal(path)


def test_more_spans_than_the_limit_are_refused(tmp_path):
    path = write_trace(tmp_path / "t.json", [kernel("k", n, 1) for n in range(11)])
    assert "more than 10 spans" in refusal(path, limit=10)
    assert len(chrome_trace.read(path, limit=11).spans) == 11


def test_a_gzip_bomb_is_refused_before_it_fills_the_memory(tmp_path):
    path = tmp_path / "t.json.gz"
    path.write_bytes(gzip.compress(b"[" + b" " * 30_000_000, 1))
    tracemalloc.start()
    try:
        sentence = refusal(path, most_bytes=3_000_000)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert "more than 0.003 GB of text" in sentence
    assert peak < 10_000_000


def test_a_stream_that_unpacks_to_hundreds_of_times_its_size_is_refused_while_it_unpacks(tmp_path):
    path = tmp_path / "t.json.gz"
    path.write_bytes(gzip.compress(b'{"traceEvents":[' + b"{}," * 2_000_000 + b"{}]}"))
    assert "unpacks to more than 200 times its size" in refusal(path)


def test_a_long_trace_of_few_kernels_unpacks_to_less_than_that(tmp_path):
    path = tmp_path / "t.json.gz"
    events = [kernel("gemm", 1000.125 * n, 3.5, correlation=n) for n in range(30_000)]
    text = json.dumps({"traceEvents": events}).encode()
    assert len(text) > trace_file.RATIO_FROM_BYTES
    path.write_bytes(gzip.compress(text, 9))
    assert len(chrome_trace.read(path).spans) == len(events)


def test_a_name_of_a_megabyte_is_cut_where_it_is_read(tmp_path):
    """Each pattern of each class passes over all of a name."""
    path = write_trace(tmp_path / "t.json", [kernel("gemm_" + "(a+)+" * 200_000, 1, 1)])
    (name,) = chrome_trace.read(path).spans.names
    assert len(name) == LONGEST_NAME
    assert class_of_name(name) == "matrix product"


def test_a_value_that_does_not_end_is_refused_before_it_fills_the_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(json_stream, "MOST_CHARACTERS", 3_000_000)
    path = tmp_path / "t.json"
    path.write_text('{"name": "' + "x" * 20_000_000)
    assert "longer than 3,000,000 characters" in refusal(path)


def test_names_without_end_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("trainmark.explain.trace_events.MOST_STORED", 1000)
    path = write_trace(tmp_path / "t.json", [kernel(f"kernel {n}", n, 1) for n in range(200)])
    assert "too many different names" in refusal(path)


def test_a_large_trace_takes_a_small_part_of_its_size_in_memory(tmp_path):
    events = [kernel("a kernel of a long name" * 5, n, 1, correlation=n) for n in range(5_000)]
    path = write_trace(tmp_path / "t.json", events)
    tracemalloc.start()
    try:
        chrome_trace.read(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # The text in hand, and at most 200 bytes a span.
    assert peak < 5_000_000 + 200 * len(events)
