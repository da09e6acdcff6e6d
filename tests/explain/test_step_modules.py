"""Device time by module, forward and backward."""

from __future__ import annotations

from builders_step import Row, Span, call, profile_of

from trainmark.explain.explanation import ModuleTime
from trainmark.explain.modules import by_path, modules
from trainmark.explain.profile import HostKind, SpanSource

ENGINE = "autograd::engine::evaluate_function: "


def frame(name: str, start: int, end: int, thread: int = 0) -> Row:
    return Row(f"nn.Module: {name}", start, end, HostKind.PYTHON, thread)


FORWARD = [
    frame("Net_0", 0, 100),
    frame("Linear_0", 10, 40),
    # A view made no node: the number is the next operator's.
    Row("aten::detach", 30, 35, sequence=5),
    frame("Linear_1", 50, 90),
    Row("aten::linear", 55, 85, sequence=5),
    Row("aten::addmm", 60, 80, sequence=5),
    call(65, 1),
]
BACKWARD = [
    Row(ENGINE + "AddmmBackward0", 120, 150, thread=1, sequence=5),
    Row("AddmmBackward0", 121, 149, thread=1, sequence=5),
    Row("aten::mm", 125, 140, thread=1),
    call(130, 2, thread=1),
]
SPANS = [Span("gemm", 70, 80, launch=1), Span("gemm", 131, 151, launch=2), Span("sgd", 170, 180, launch=3)]


def test_backward_comes_home_to_the_module_that_made_its_node():
    assert modules(profile_of(SPANS, [200], rows=[*FORWARD, *BACKWARD])) == (
        ModuleTime("Net_0 / Linear_1", forward=10, backward=20, launches=2),
    )


def test_what_is_recomputed_in_backward_belongs_to_the_module_around_it():
    rows = [
        *FORWARD,
        Row(ENGINE + "CheckpointBackward", 120, 190, thread=1, sequence=5),
        frame("Conv_0", 125, 150, thread=1),
        Row("aten::conv2d", 130, 140, thread=1),
        call(131, 2, thread=1),
    ]
    times = {time.name: time for time in modules(profile_of(SPANS, [200], rows=rows))}
    assert times["Conv_0"] == ModuleTime("Conv_0", forward=0, backward=20, launches=1)


def test_without_frames_of_modules_there_are_none():
    assert modules(profile_of(SPANS, [200], rows=BACKWARD)) == ()


def test_spans_outside_the_steps_do_not_count():
    assert modules(profile_of(SPANS, [100], rows=[*FORWARD, *BACKWARD]))[0].backward == 0


TIMES = (
    ModuleTime("Net_0 / Block_0 / Linear_0", 10, 20, 1),
    ModuleTime("Net_0 / Block_1 / Linear_12", 1, 2, 1),
    ModuleTime("Net_0 / Block_1 / Norm_1", 5, 6, 1),
)


def test_scopes_of_a_compiled_program_are_its_modules():
    paths = {
        "jit(step)/jvp(Block_3)/Dense_0/dot_general": 10,
        "jit(step)/transpose(jvp(Block_3))/Dense_0/vmap(BTNH,BSNH->BNTS)/dot_general": 20,
        "jit(step)/jvp(Block_3)/jit(gelu)/tanh": 5,
        "jit(step)/optimizer_step/mul": 7,
        "StatefulPartitionedCall/gradient_tape/Block_3/Dense_1/MatMul/MatMul_1": 30,
        "copy": 1,
    }
    starts = range(0, 1000, 100)
    spans = [
        Span("fusion", start, start + time, source=SpanSource(path))
        for start, (path, time) in zip(starts, paths.items(), strict=False)
    ]
    assert modules(profile_of(spans, [1000])) == (
        ModuleTime("Block_3 / Dense_0", forward=10, backward=20, launches=2),
        ModuleTime("Block_3 / Dense_1", forward=0, backward=30, launches=1),
        ModuleTime("Block_3", forward=5, backward=0, launches=1),
    )


def two_models(*names: str):
    rows, spans = [], []
    for number, name in enumerate(names):
        start = 100 * number
        rows += [frame(name, start, start + 90), frame(f"Linear_{number}", start + 10, start + 80)]
        rows.append(call(start + 20, number + 1))
        spans.append(Span("gemm", start + 30, start + 40, launch=number + 1))
    return profile_of(spans, [1000], rows=rows)


def test_models_of_one_type_are_told_apart_by_their_variables_or_by_number():
    profile = two_models("Sequential_0", "Sequential_1", "Net_0")
    named = modules(profile, {"Sequential_0": "G", "Sequential_1": "D", "Net_0": "net"})
    assert {time.name for time in by_path(named, 4)} == {
        "G (Sequential) / Linear",
        "D (Sequential) / Linear",
        "Net / Linear",
    }
    assert {time.name for time in by_path(modules(profile), 4)} == {
        "Sequential #1 / Linear",
        "Sequential #2 / Linear",
        "Net / Linear",
    }


def test_many_layers_that_a_program_calls_itself_are_one_row():
    profile = two_models(*(f"Block_{number}" for number in range(9)))
    assert {time.name for time in by_path(modules(profile), 4)} == {"Block / Linear"}
