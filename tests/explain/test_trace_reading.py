"""Traces of Kineto become columns: what is read, exactly when, and which operator launched what."""

from __future__ import annotations

import gzip
import json

import pytest
from builders_trace import annotation, call, kernel, operator, span, write_trace

from trainmark.explain import chrome_trace
from trainmark.explain.profile import DeviceKind, HostKind, Operands


def names_of(columns):
    return [columns.names[name] for name in columns.name]


@pytest.fixture(scope="module")
def profile(tmp_path_factory):
    """Two operators in a step, one within the other: a kernel, a copy of 64 bytes, a frame of Python."""
    events = [
        kernel("gemm", 30, 5, correlation=2),
        annotation("ProfilerStep#3", 0, 100),
        operator("aten::linear", 10, 20, **{"Sequence number": 8}),
        operator(
            "aten::addmm",
            12,
            10,
            **{
                "Input Dims": [[4, 8], [8, 2], [], []],
                "Input type": ["float", "float", "float", "Scalar"],
                "Concrete Inputs": ["", "", "", "1"],
            },
        ),
        call(14, 2),
        call(25, 3, "cudaMemcpyAsync"),
        call(50, 4, "cudaDeviceSynchronize"),
        span("gpu_memcpy", "Memcpy HtoD", 36, 2, 7, device=0, stream=9, correlation=3, bytes=64),
        span("gpu_user_annotation", "ProfilerStep#3", 30, 8, 7, device=0, stream=7),
        span("python_function", "train.py(31): main", 1, 90),
        span("overhead", "Activity Buffer Request", 2, 3),
        {"ph": "f", "id": 2, "cat": "ac2g", "name": "ac2g", "ts": 1, "pid": 0, "tid": 7},
        {"ph": "M", "name": "process_name", "pid": 20, "tid": 0, "args": {"name": "python"}},
    ]
    metadata = {
        "distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8},
        "deviceProperties": [{"id": 0, "name": "NVIDIA H200"}, {"id": 1, "name": "another"}],
        "record_shapes": 1,
        "cupti_version": 28,
    }
    return chrome_trace.read(write_trace(tmp_path_factory.mktemp("trace") / "trace.json", events, **metadata))


def test_device_records_are_kernels_and_copies_by_start(profile):
    assert names_of(profile.spans) == ["gemm", "Memcpy HtoD"]
    assert list(profile.spans.kind) == [DeviceKind.KERNEL, DeviceKind.COPY]
    assert list(profile.spans.stream) == [7, 9]
    assert list(profile.spans.bytes) == [0, 64]
    assert (list(profile.spans.start), list(profile.spans.end)) == ([30_000, 36_000], [35_000, 38_000])


def test_host_records_have_their_kinds_and_annotations_of_the_device_are_not_among_them(profile):
    kinds = dict(zip(names_of(profile.host), profile.host.kind, strict=True))
    assert kinds == {
        "ProfilerStep#3": HostKind.ANNOTATION,
        "train.py(31): main": HostKind.PYTHON,
        "aten::linear": HostKind.OPERATOR,
        "aten::addmm": HostKind.OPERATOR,
        "cudaLaunchKernel": HostKind.RUNTIME,
        "cudaMemcpyAsync": HostKind.RUNTIME,
        "cudaDeviceSynchronize": HostKind.RUNTIME,
    }


def test_a_device_record_belongs_to_the_innermost_operator_around_its_call(profile):
    operators = [names_of(profile.host)[row] for row in profile.spans.operator]
    assert operators == ["aten::addmm", "aten::linear"]


def test_shapes_types_and_values_of_an_operator_are_read(profile):
    row = names_of(profile.host).index("aten::addmm")
    assert dict(profile.host.operands) == {
        row: Operands(((4, 8), (8, 2), (), None), ("float", "float", "float", "Scalar"), ("", "", "", "1"))
    }


def test_the_sequence_number_of_autograd_is_read(profile):
    assert profile.host.sequence[names_of(profile.host).index("aten::linear")] == 8


def test_rank_device_and_settings_come_from_the_metadata(profile):
    assert (profile.rank, profile.world_size, profile.device_name) == (3, 8, "NVIDIA H200")
    assert profile.facts["cupti_version"] == 28
    assert (profile.facts["overhead_records"], profile.facts["overhead_nanoseconds"]) == (1, 3000)


def test_a_list_of_tensors_has_an_entry_for_each(tmp_path):
    inputs = {"Input Dims": [[[2, 3], [4]], []], "Input type": ["TensorList", "Scalar"]}
    profile = chrome_trace.read(write_trace(tmp_path / "t.json", [operator("aten::cat", 0, 1, **inputs)]))
    assert profile.host.operands[0] == Operands(((2, 3), (4,), None), ("TensorList", "TensorList", "Scalar"))


@pytest.mark.parametrize("whole", [1_712_195_495_505_543, 6_520_618_853_487, 4_108_960_469_720])
def test_nanoseconds_survive_where_a_float_would_round_them(tmp_path, whole):
    path = tmp_path / "t.json"
    event = f'{{"ph": "X", "cat": "kernel", "name": "k", "ts": {whole}.001, "dur": 0.998}}'
    path.write_text(f'{{"traceEvents": [{event}], "baseTimeNanoseconds": 1790857026000000007}}')
    spans = chrome_trace.read(path).spans
    begin = whole * 1000 + 1_790_857_026_000_000_007
    assert (int(spans.start[0]), int(spans.end[0])) == (begin + 1, begin + 999)


@pytest.mark.parametrize("form", ["gzip", "list", "indented", "byte order mark"])
def test_other_forms_of_the_same_trace_read_the_same(tmp_path, form):
    events = [kernel("a", 1, 2), kernel("é\n", 4, 2.5)]
    plain = json.dumps({"traceEvents": events})
    path = tmp_path / "trace"
    path.write_bytes(
        {
            "gzip": gzip.compress(plain.encode()),
            "list": json.dumps(events).encode(),
            "indented": json.dumps({"traceEvents": events}, indent=4, ensure_ascii=False).encode(),
            "byte order mark": b"\xef\xbb\xbf" + plain.encode(),
        }[form]
    )
    spans = chrome_trace.read(path).spans
    assert names_of(spans) == ["a", "é\n"]
    assert list(spans.end) == [3000, 6500]


@pytest.mark.parametrize("size", [1, 7, 64])
def test_where_chunks_of_the_file_end_does_not_matter(tmp_path, monkeypatch, size):
    events = [
        kernel('gemm \\ \u00e9 "x"', 1.25, 2),
        operator("aten::mm", 10.5, 3, **{"Input Dims": [[12, 345]]}),
    ]
    path = write_trace(tmp_path / "t.json", events, baseTimeNanoseconds=1000, version=-4.25e-7)
    whole = chrome_trace.read(path)
    monkeypatch.setattr("trainmark.explain.json_stream.CHUNK_BYTES", size)
    pieces = chrome_trace.read(path)
    assert list(pieces.spans.start) == list(whole.spans.start) == [2250]
    assert names_of(pieces.spans) == names_of(whole.spans)
    assert dict(pieces.host.operands) == dict(whole.host.operands)
    assert pieces.facts["version"] == -4.25e-7


def test_kernels_of_a_graph_launch_are_in_a_graph(tmp_path):
    events = [
        call(0, 5, "cudaGraphLaunch"),
        call(4, 6),
        kernel("replayed", 10, 1, correlation=5),
        kernel("replayed", 12, 1, correlation=5),
        kernel("launched", 14, 1, correlation=6),
        kernel("node", 16, 1, **{"graph node id": 77}),
    ]
    assert list(chrome_trace.read(write_trace(tmp_path / "t.json", events)).spans.in_graph) == [
        True,
        True,
        False,
        True,
    ]


def test_of_several_devices_the_one_with_most_records_is_taken_and_the_others_are_noted(tmp_path):
    events = [kernel("a", 0, 1), kernel("b", 2, 1, device=4), kernel("c", 4, 1, device=4)]
    properties = [{"id": 0, "name": "first"}, {"id": 4, "name": "fourth"}]
    profile = chrome_trace.read(write_trace(tmp_path / "t.json", events, deviceProperties=properties))
    assert names_of(profile.spans) == ["b", "c"]
    assert profile.device_name == "fourth"
    assert "2 devices" in profile.facts["notes"][0]


@pytest.mark.parametrize(
    ("message", "lost"),
    [
        ("WARNING: Dropped 12 activity records", 12),
        ("5 records were dropped", 5),
        ("Exceeded max GPU buffer count (33 >= 33) - terminating tracing", 1),
        ("Enabling GPU tracing", 0),
    ],
)
def test_records_that_the_profiler_says_it_lost_are_counted(tmp_path, message, lost):
    path = write_trace(tmp_path / "t.json", [kernel("a", 0, 1)], WARNING=[message], ERROR=[7])
    assert chrome_trace.read(path).lost == lost


def test_threads_of_two_processes_with_one_number_stay_apart(tmp_path):
    first, second = operator("a", 0, 1), operator("b", 0, 1)
    second["pid"] = 99
    assert len(set(chrome_trace.read(write_trace(tmp_path / "t.json", [first, second])).host.thread)) == 2


def test_half_a_surrogate_pair_in_a_name_can_be_printed(tmp_path):
    path = tmp_path / "t.json"
    path.write_text('[{"ph": "X", "cat": "kernel", "name": "a\\ud800", "ts": 1, "dur": 1}]')
    assert names_of(chrome_trace.read(path).spans) == ["a?"]


def test_rates_that_are_not_finite_as_c_prints_them_do_not_stop_the_reading(tmp_path):
    path = write_trace(tmp_path / "t.json", [kernel("a", 1, 0, rate="R"), kernel("b", 2, 0, rate="R")])
    path.write_text(path.read_text().replace('"R"', "-inf", 1).replace('"R"', "nan"))
    assert names_of(chrome_trace.read(path).spans) == ["a", "b"]


def test_facts_that_are_not_finite_are_left_out(tmp_path):
    path = tmp_path / "t.json"
    path.write_text(
        '{"a": 1e999, "b": NaN, "c": 4.5, "ab": 1'
        + "0" * 400
        + ', "traceEvents": ['
        + json.dumps(kernel("k", 1, 1))
        + "]}"
    )
    assert {name: fact for name, fact in chrome_trace.read(path).facts.items() if name in "abc"} == {"c": 4.5}
