"""A profile written for Perfetto is the same profile when it is read."""

from __future__ import annotations

import gzip
import json
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from builders_trace import annotation, operator, write_trace
from hypothesis import given, settings
from hypothesis import strategies as st

from trainmark.base.errors import UserError
from trainmark.explain import chrome_trace, perfetto
from trainmark.explain.profile import (
    Collector,
    DeviceKind,
    HostKind,
    Operands,
    Profile,
    ProfiledStep,
    SpanSource,
)

NAMES = st.text(max_size=8)
TIMES = st.tuples(st.integers(0, 2 * 10**18), st.integers(0, 10**12))
SMALL = st.integers(-(2**31), 2**31 - 1)
CORRELATIONS = st.one_of(st.just(-1), st.integers(1, 2**40))
SHAPES = st.lists(st.tuples(st.integers(0, 4096), st.integers(0, 4096)), max_size=3)
WORK = st.one_of(st.none(), st.integers(0, 2**40))
SOURCES = st.one_of(st.none(), st.builds(SpanSource, NAMES, WORK, WORK))
DEVICE_SPANS = st.tuples(
    *(NAMES, TIMES, SMALL, st.sampled_from(DeviceKind), CORRELATIONS, st.booleans(), st.integers(0, 2**40)),
    SOURCES,
)
HOST_SPANS = st.tuples(NAMES, TIMES, SMALL, st.sampled_from(HostKind), st.integers(1, 2**40), SHAPES, SOURCES)


@st.composite
def profiles(draw):
    collector = Collector()
    for name, (start, length), stream, kind, launch, in_graph, size, source in draw(
        st.lists(DEVICE_SPANS, min_size=1)
    ):
        source = source if kind is DeviceKind.KERNEL else None
        collector.device(name, start, start + length, stream, kind, launch, in_graph, size, source)
    for name, (start, length), thread, kind, number, shapes, source in draw(st.lists(HOST_SPANS)):
        is_operator, is_call = kind is HostKind.OPERATOR, kind is HostKind.RUNTIME
        # A call of this name would put the kernels that it launched into a graph.
        name = name.replace("GraphLaunch", "")
        operands = Operands((*shapes, None), ("float",) * len(shapes) + ("Scalar",)) if is_operator else None
        launch, sequence = number if is_call else -1, number if is_operator else -1
        source = source if is_operator else None
        collector.host(name, start, start + length, thread, kind, launch, sequence, operands, source)
    edges = sorted(draw(st.lists(st.integers(0, 2 * 10**18), min_size=2, max_size=4, unique=True)))
    steps = tuple(ProfiledStep(n, start, end) for n, (start, end) in enumerate(pairwise(edges)))
    name = draw(st.one_of(st.none(), st.just("NVIDIA H200")))
    return Profile("cuda", collector.device_spans(), collector.host_spans(), steps, 1, 4, name, lost=3)


def rows(spans, columns):
    names = [spans.names[name] for name in spans.name]
    return sorted(zip(names, *(getattr(spans, column).tolist() for column in columns), strict=True))


def by_span(spans, entries):
    rows = [(spans.names[spans.name[row]], spans.start[row], spans.end[row]) for row in entries]
    return sorted(map(repr, zip(rows, entries.values(), strict=True)))


@settings(max_examples=60, deadline=None)
@given(profiles())
def test_random_spans_written_and_read_back_are_equal(profile):
    with TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        assert perfetto.write(path, profile, ["other"] * len(profile.spans)) == 0
        again = chrome_trace.read(path)
    device = ("kind", "start", "end", "stream", "launch", "in_graph", "bytes")
    host = ("kind", "start", "end", "thread", "launch", "sequence")
    assert rows(again.spans, device) == rows(profile.spans, device)
    assert rows(again.host, host) == rows(profile.host, host)
    assert np.array_equal(again.spans.start, profile.spans.start)
    assert by_span(again.host, again.host.operands) == by_span(profile.host, profile.host.operands)
    assert by_span(again.host, again.host.sources) == by_span(profile.host, profile.host.sources)
    assert by_span(again.spans, again.spans.sources) == by_span(profile.spans, profile.spans.sources)
    assert again.steps == profile.steps
    assert (again.rank, again.world_size, again.device_name, again.lost) == (1, 4, profile.device_name, 3)


def overlapping():
    collector = Collector()
    for start, end, stream in ((0, 10, 7), (5, 20, 7), (10, 15, 7), (0, 30, 8)):
        collector.device("k", start, end, stream)
    collector.host("aten::mm", 0, 4)
    return Profile("cuda", collector.device_spans(), collector.host_spans(), (ProfiledStep(1, 0, 30),))


def test_spans_that_overlap_in_a_stream_get_lanes_of_their_own(tmp_path):
    path = tmp_path / "trace.json.gz"
    perfetto.write(path, overlapping())
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    labels = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert sorted(labels.values()) == ["stream 7", "stream 7 (2)", "stream 8"]
    kernels = [event for event in events if event.get("cat") == "kernel"]
    for lane in labels:
        spans = sorted((e["ts"], e["ts"] + e["dur"]) for e in kernels if (e["pid"], e["tid"]) == lane)
        assert all(first[1] <= second[0] for first, second in pairwise(spans))


def test_each_span_carries_its_class(tmp_path):
    profile = overlapping()
    perfetto.write(tmp_path / "t.json", profile, ["copy", "attention", "other", "copy"])
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert [e["args"]["class"] for e in events if e.get("cat") == "kernel"] == [
        "copy",
        "attention",
        "other",
        "copy",
    ]


def test_beyond_the_limit_the_shortest_spans_are_left_out(tmp_path):
    assert perfetto.write(tmp_path / "t.json", overlapping(), most=2) == 3
    assert sorted(chrome_trace.read(tmp_path / "t.json").spans.end.tolist()) == [20, 30]


def test_a_profile_of_a_cpu_is_the_same_again(tmp_path):
    events = [operator("outer", 0, 100), operator("inner", 10, 20)]
    events += [annotation(f"trainmark_step#{n}", 60 * n, 60) for n in range(2)]
    profile = chrome_trace.read(write_trace(tmp_path / "t.json", events, baseTimeNanoseconds=10**18))
    perfetto.write(tmp_path / "again.json", profile, ["other"] * len(profile.spans))
    again = chrome_trace.read(tmp_path / "again.json")
    assert (again.device, again.steps) == ("cpu", profile.steps)
    assert rows(again.spans, ("start", "end", "stream")) == rows(profile.spans, ("start", "end", "stream"))


def test_a_folder_that_is_not_there_is_a_sentence_and_leaves_nothing(tmp_path):
    with pytest.raises(UserError, match=r"t\.json cannot be written: No such file or directory\.$"):
        perfetto.write(tmp_path / "none" / "t.json", overlapping())
    assert list(tmp_path.iterdir()) == []
