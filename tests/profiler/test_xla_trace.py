"""XLA's profiles of a GPU, built field by field: what becomes of kernels, copies, graphs and host calls."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from xplane_builder import Plane, field, instruction, message, program, space, varint

from trainmark.inside.profiler import hlo, xla_session
from trainmark.inside.profiler.xla_session import Thunk, asynchronous
from trainmark.inside.wire import WireError

WALL = 1_790_000_000_123_456_789
M, K, N = 64, 32, 16
TENS = 10_000  # nanoseconds


def contracting(axis: int) -> bytes:
    return field(30, message((1, varint(axis))))


def matrix_program() -> bytes:
    """A fused matrix product with its bias, and a transpose that is named as the product that it serves."""
    source = "jit(step)/jvp(Dense_0)/dot_general"
    fused = [
        instruction(1, "p0", "parameter", (M, K)),
        instruction(2, "p1", "parameter", (K, N)),
        instruction(3, "dot.1", "dot", (M, N), (1, 2), source, more=contracting(1)),
        instruction(4, "add.1", "add", (M, N), (3, 3), "jit(step)/jvp(Dense_0)/add"),
    ]
    moved = [
        instruction(5, "p2", "parameter", (K, M)),
        instruction(6, "transpose.1", "transpose", (M, K), (5,), source),
    ]
    entry = [
        instruction(10, "x", "parameter", (K, M)),
        instruction(11, "w", "parameter", (K, N)),
        instruction(12, "input_transpose_fusion", "fusion", (M, K), (10,), source, (2,)),
        instruction(13, "gemm_fusion_dot.3", "fusion", (M, N), (12, 11), "jit(step)/jvp(Dense_0)/add", (1,)),
    ]
    return program({1: fused, 2: moved, 3: entry})


def gpu_space(start: int = 0) -> bytes:
    device = Plane("/device:GPU:0", {"gpu_device_name": "NVIDIA H200"})
    moved = {"hlo_op": "input_transpose_fusion", "hlo_module": "jit_step", "program_id": 7}
    product = {**moved, "hlo_op": "gemm_fusion_dot.3"}
    copied = {"memcpy_details": "kind_src:pinned kind_dst:device size:4096 dest:0 async:1"}
    cleared = {"memset_details": "kind:device num_bytes:64 async:1"}
    device.line(
        7,
        "Stream #7(Compute,MemcpyH2D)",
        [
            (
                "input_transpose_fusion",
                1000,
                1100,
                {"correlation_id": 1, **moved},
            ),
            ("gemm_fusion_dot_3", 1100, 1400, {"correlation_id": 2, **product}),
            ("splitKreduce", 1400, 1450, {"correlation_id": 3, **product}),
            (
                "MemcpyH2D",
                1500,
                1600,
                {"correlation_id": 4, **copied},
            ),
            (
                "Memset",
                1600,
                1601,
                {"correlation_id": 5, **cleared},
            ),
            (
                "gemm_fusion_dot_3",
                1700,
                1999,
                {"correlation_id": 6, "cuda_graph_id": 4, "cuda_graph_node_id": 900},
            ),
        ],
        start,
    )
    device.line(99, "CUPTI overhead", [("Buffer flush", 0, 5000, {})], start)
    host = Plane("/host:CPU")
    host.line(
        1,
        "python",
        [
            ("trainmark_step#0", 0, 900, {}),
            ("$train.py:31 main", 10, 800, {}),
            ("$builtins sleep", 20, 30, {}),
            ("PjRtClient::Internal", 40, 50, {}),
            ("cuLaunchKernelEx", 100, 110, {"correlation_id": 2}),
            ("cuGraphLaunch (CudaGraph:4)", 200, 240, {"correlation_id": 6}),
        ],
        start,
    )
    metadata = Plane("/host:metadata")
    metadata.metadata("jit_step(7)", {"program_id": 7, "Hlo Proto": matrix_program()})
    environment = Plane("Task Environment", {"profile_start_time": WALL})
    dropped = "Profiler: 12 events dropped because total device(activity) events reaches max."
    return space(device, host, metadata, environment, warnings=[dropped])


def converted(data: bytes, folder: Path) -> dict:
    path = folder / "rank0-timing.json.gz"
    xla_session.convert(data, str(path), 42)
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return json.load(file)


@pytest.fixture(scope="module")
def document(tmp_path_factory):
    return converted(gpu_space(), tmp_path_factory.mktemp("xla"))


def named(document: dict, name: str) -> list[dict]:
    return [event for event in document["traceEvents"] if event["name"] == name and event["ph"] == "X"]


def categories(document: dict) -> dict[str, set[str]]:
    result: dict[str, set[str]] = {}
    for event in document["traceEvents"]:
        if event["ph"] == "X":
            result.setdefault(event["cat"], set()).add(event["name"])
    return result


def test_spans_get_the_categories_of_kineto(document):
    assert categories(document) == {
        "kernel": {"input_transpose_fusion", "gemm_fusion_dot_3", "splitKreduce"},
        "gpu_memcpy": {"MemcpyH2D"},
        "gpu_memset": {"Memset"},
        "user_annotation": {"trainmark_step#0"},
        "python_function": {"train.py(31): main", "<built-in function sleep>"},
        "cuda_driver": {"cuLaunchKernelEx", "cuGraphLaunch"},
    }


def test_a_kernel_has_its_stream_its_launch_and_exact_times(document):
    kernel = named(document, "gemm_fusion_dot_3")[0]
    assert (kernel["pid"], kernel["tid"], kernel["args"]["correlation"]) == (0, 7, 2)
    assert (round(kernel["ts"] * 1000), round(kernel["dur"] * 1000)) == (1100, 300)


def test_a_fused_matrix_product_is_named_by_its_scope_and_counts_once(document):
    first, second = named(document, "gemm_fusion_dot_3")[0], named(document, "splitKreduce")[0]
    assert first["args"]["operator"] == second["args"]["operator"] == "jit(step)/jvp(Dense_0)/dot_general"
    assert first["args"]["flop"] == 2 * M * K * N
    assert first["args"]["traffic"] == 4 * (M * K + K * N + M * N)
    assert "flop" not in second["args"]


def test_a_transpose_before_a_product_is_not_taken_for_the_product(document):
    (event,) = named(document, "input_transpose_fusion")
    assert event["args"]["operator"] == "jit(step)/jvp(Dense_0)/transpose"
    assert event["args"]["flop"] == 0


def test_a_kernel_of_a_graph_is_marked_and_found_by_its_name(document):
    outside, replayed = named(document, "gemm_fusion_dot_3")
    assert "graph node id" not in outside["args"]
    assert replayed["args"]["graph node id"] == 900
    assert replayed["args"]["correlation"] == named(document, "cuGraphLaunch")[0]["args"]["correlation"]
    assert replayed["args"]["operator"] == outside["args"]["operator"]


def test_copies_and_memsets_have_their_bytes(document):
    assert named(document, "MemcpyH2D")[0]["args"]["bytes"] == 4096
    assert named(document, "Memset")[0]["args"]["bytes"] == 64


def test_the_device_its_wall_time_and_dropped_events_are_in_the_head(document):
    assert document["deviceProperties"] == [{"id": 0, "name": "NVIDIA H200"}]
    assert document["baseTimeNanoseconds"] == WALL
    assert document["lost_records"] == 12


def test_a_kernel_of_tensorflow_has_its_operator(tmp_path):
    device = Plane("/device:GPU:0")
    operator = "gradient_tape/net/conv1/Conv2DBackpropFilter:Conv2DBackpropFilter"
    rows = [("wgrad", 10, 20, {"tf_op": operator}), ("fusion", 20, 30, {"tf_op": "XlaModule:"})]
    device.line(7, "Stream #7(Compute)", rows)
    document = converted(space(device), tmp_path)
    assert named(document, "wgrad")[0]["args"]["operator"] == operator
    assert "operator" not in named(document, "fusion")[0]["args"]


def test_times_since_1970_stay_exact_to_the_nanosecond(tmp_path):
    device = Plane("/device:GPU:0")
    device.line(7, "Stream #7(Compute)", [("kernel", WALL + 1, WALL + 1235, {})], WALL)
    (kernel,) = named(converted(space(device), tmp_path), "kernel")
    assert (round(kernel["ts"] * 1000), round(kernel["dur"] * 1000)) == (1, 1234)


def test_a_profile_that_ends_early_is_refused_and_leaves_no_file(tmp_path):
    with pytest.raises(WireError):
        xla_session.convert(gpu_space()[:-5], str(tmp_path / "cut.json.gz"), 42)
    assert list(tmp_path.iterdir()) == []


def test_an_event_that_ends_early_leaves_no_half_trace(tmp_path):
    line = message((1, 7), (2, "Stream #7"), (4, varint(1 << 3) + b"\x80"))
    plane = message((2, "/device:GPU:0"), (3, line))
    with pytest.raises(WireError):
        xla_session.convert(message((1, plane)), str(tmp_path / "cut.json.gz"), 42)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("target", "result", "left", "right"),
    [
        ("__cudnn$convForward", (8, 14, 14, 32), (8, 28, 28, 16), (3, 3, 16, 32)),
        ("__cudnn$convBackwardInput", (8, 28, 28, 16), (8, 14, 14, 32), (3, 3, 16, 32)),
        ("__cudnn$convBackwardFilter", (3, 3, 16, 32), (8, 28, 28, 16), (8, 14, 14, 32)),
    ],
)
def test_a_convolution_of_cudnn_costs_the_same_forward_and_backward(target, result, left, right):
    window = b"".join(field(1, message((1, 3), (2, 2), (6, 1))) for _ in range(2))
    more = field(15, window) + field(16, message((3, 2))) + field(28, target)
    instructions = [
        instruction(1, "a", "parameter", left),
        instruction(2, "b", "parameter", right),
        instruction(
            3, "cudnn-conv.1", "custom-call", result, (1, 2), "jit(step)/conv_general_dilated", more=more
        ),
    ]
    ran = hlo.read(memoryview(program({1: instructions})))["cudnn-conv.1"]
    assert ran.flop == 2 * 8 * 14 * 14 * 32 * 3 * 3 * 16
    assert ran.operator == "jit(step)/conv_general_dilated"


def thunk(name, start, end, flow=None, flop=0):
    """Times are in tens of microseconds here and below."""
    return Thunk(0, name, start * TENS, end * TENS, {"operator": name, "flop": flop}, flow)


def later(thunks, marks, executions):
    spans = asynchronous(
        thunks,
        {flow: end * TENS for flow, end in marks.items()},
        [(start * TENS, end * TENS) for start, end in executions],
        thread=7,
    )
    return [(span.name, span.start // TENS, span.end // TENS, span.args) for span in spans]


def test_a_gap_of_a_program_is_the_time_of_the_convolution_that_goes_on():
    thunks = [thunk("conv", 0, 10, 11, flop=8), thunk("copy", 10, 30, 12), thunk("add", 90, 95, 13)]
    assert later(thunks, {12: 30, 11: 120, 13: 95}, [(0, 30), (30, 100)]) == [
        ("conv", 30, 90, {"operator": "conv"}),
        ("conv", 95, 100, {"operator": "conv"}),
    ]


def test_a_convolution_that_has_ended_is_not_blamed_for_a_later_gap():
    thunks = [thunk("conv", 0, 10, 11, flop=8), thunk("copy", 10, 30, 12), thunk("add", 90, 95, 13)]
    assert later(thunks, {11: 20, 12: 85, 13: 95}, [(0, 95)])[0] == ("copy", 30, 90, {"operator": "copy"})


def test_without_marks_the_last_thunk_with_flop_has_the_gap():
    thunks = [thunk("conv", 0, 10, flop=8), thunk("copy", 10, 30), thunk("add", 90, 95)]
    assert later(thunks, {}, [(0, 95)]) == [("conv", 30, 90, {"operator": "conv"})]


def test_between_two_programs_nothing_goes_on():
    thunks = [thunk("conv", 0, 10, flop=8), thunk("conv", 50, 60, flop=8)]
    assert later(thunks, {}, [(0, 10), (50, 60)]) == []


def test_an_instruction_without_a_name_has_the_scope_of_those_around_it():
    backward = "jit(step)/transpose(jvp(Block_3))"
    instructions = [
        instruction(1, "activation", "add", (M, K), (), "jit(step)/jvp(Block_3)/Dense_0/add"),
        instruction(2, "gradient", "multiply", (M, K), (), backward + "/attention/mul"),
        instruction(3, "dot.1", "dot", (M, N), (1, 2), more=contracting(1)),
        instruction(4, "after", "transpose", (N, M), (3,), backward + "/attention/vmap()/transpose"),
    ]
    ran = hlo.read(memoryview(program({1: instructions})))
    assert ran["dot.1"].operator == backward + "/attention/dot_general"


def test_the_flop_of_an_unknown_library_are_not_zero_but_unknown():
    library = instruction(3, "fmha.1", "custom-call", (M, N), (1, 2), more=field(28, "__cudnn$fmhaSoftmax"))
    operands = [instruction(number, f"p{number}", "parameter", (M, N)) for number in (1, 2)]
    caller = [instruction(4, "fusion.1", "fusion", (M, N), (), called=(1,))]
    ran = hlo.read(memoryview(program({1: [*operands, library], 2: caller})))
    assert (ran["p1"].flop, ran["fmha.1"].flop, ran["fusion.1"].flop) == (0, None, None)
