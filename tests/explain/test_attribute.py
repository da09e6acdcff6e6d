"""A class for every span, from what launched it."""

from __future__ import annotations

from builders_step import Row, Span, call, profile_of

from trainmark.explain.kernel_classes import classes_of
from trainmark.explain.profile import DeviceKind, HostKind, SpanSource

ADD = "vectorized_elementwise_kernel<4, CUDAFunctor_add<float>>"
GEMM = "ampere_sgemm_128x128_tn"
ENGINE = "autograd::engine::evaluate_function: "


def eager(start: int = 0):
    """An addition in the model and one in the optimizer, by the same kernel."""
    return [
        Row("aten::add", start, start + 10),
        call(start + 5, start + 1),
        Row("Optimizer.step#SGD.step", start + 20, start + 40, HostKind.ANNOTATION),
        Row("aten::add_", start + 22, start + 30),
        call(start + 25, start + 2),
    ]


def test_one_kernel_is_of_two_classes_by_what_launched_it():
    spans = [Span(ADD, 10, 20, launch=1), Span(ADD, 30, 40, launch=2)]
    assert classes_of(profile_of(spans, [50], rows=eager())) == ["elementwise", "optimiser"]


def test_a_step_annotation_that_a_hook_opens_in_the_optimizer_is_not_a_part_of_it():
    rows = [
        Row("Optimizer.step#SGD.step", 0, 100_000, HostKind.ANNOTATION),
        Row("trainmark_step#1", 90_000, 900_000, HostKind.ANNOTATION),
        Row("aten::relu", 200_000, 300_000),
        call(250_000, 1),
    ]
    assert classes_of(profile_of([Span(ADD, 260_000, 270_000, launch=1)], [900_000], rows=rows)) == [
        "elementwise"
    ]


def test_a_call_whose_end_is_rounded_beyond_its_callers_is_the_callers_own():
    rows = [
        Row("Optimizer.step#SGD.step", 0, 100_000, HostKind.ANNOTATION),
        Row("aten::add_", 50_000, 100_900),
        call(60_000, 1),
    ]
    assert classes_of(profile_of([Span(ADD, 70_000, 80_000, launch=1)], [100_000], rows=rows)) == [
        "optimiser"
    ]


def test_a_pass_without_operators_takes_the_classes_of_the_one_with_them():
    rows = [*eager(), *eager(100)]
    detail = profile_of(
        [
            Span(ADD, 100 * step + 10 * n, 100 * step + 10 * n + 5, launch=100 * step + n)
            for step in (0, 1)
            for n in (1, 2)
        ],
        [100, 200],
        rows=rows,
    )
    timing = profile_of(
        [Span(ADD, start, start + 5) for start in (1010, 1020, 1110, 1120)], [1100, 1200], 1000
    )
    assert classes_of(timing) == ["elementwise"] * 4
    assert classes_of(timing, detail) == ["elementwise", "optimiser"] * 2


def test_a_kernel_that_ran_another_number_of_times_takes_its_usual_class():
    spans = [Span(ADD, 10, 20, launch=1), Span(ADD, 30, 40, launch=2)]
    detail = profile_of(spans, [50], rows=[*eager()[:2], *eager()[2:]])
    timing = profile_of([Span(ADD, 0, 5), Span(ADD, 6, 7), Span(ADD, 8, 9)], [10])
    assert set(classes_of(timing, detail)) == {"elementwise"}


def test_backward_of_unfused_attention_is_attention_by_its_sequence_number():
    rows = [
        Row("aten::_scaled_dot_product_attention_math", 0, 20),
        Row("aten::bmm", 2, 10, sequence=7),
        call(4, 1),
        Row(ENGINE + "BmmBackward0", 30, 50, thread=1, sequence=7),
        Row("BmmBackward0", 31, 49, thread=1, sequence=7),
        Row("aten::bmm", 32, 40, thread=1),
        call(35, 2, thread=1),
    ]
    spans = [Span(GEMM, 5, 10, launch=1), Span(GEMM, 36, 40, launch=2)]
    assert classes_of(profile_of(spans, [60], rows=rows)) == ["attention", "attention"]


def test_gradients_that_the_engine_adds_up_are_not_of_the_function_beside_them():
    rows = [
        Row(ENGINE + "NativeLayerNormBackward0", 0, 50, sequence=3),
        Row("NativeLayerNormBackward0", 1, 20, sequence=3),
        Row("aten::native_layer_norm_backward", 2, 19),
        call(5, 1),
        Row("aten::add_", 30, 40),
        call(35, 2),
    ]
    spans = [Span("unknown", 10, 20, launch=1), Span(ADD, 40, 45, launch=2)]
    assert classes_of(profile_of(spans, [60], rows=rows)) == ["normalisation", "elementwise"]


def test_copies_and_memsets_are_copies_whatever_launched_them():
    rows = [Row("aten::convolution_backward", 0, 10), call(5, 1)]
    spans = [Span("Memset (Device)", 6, 9, launch=1, kind=DeviceKind.MEMSET)]
    assert classes_of(profile_of(spans, [20], rows=rows)) == ["copy"]


def test_an_update_written_by_hand_is_known_by_its_frame_and_a_training_in_such_a_file_is_not():
    rows = [
        Row("my_optimizer.py(9): main", 0, 90, HostKind.PYTHON),
        Row("aten::add", 2, 10),
        call(5, 1),
        Row("my_optimizer.py(31): step", 20, 80, HostKind.PYTHON),
        Row("aten::add_", 30, 40),
        call(35, 2),
    ]
    spans = [Span(ADD, 10, 20, launch=1), Span(ADD, 40, 50, launch=2)]
    assert classes_of(profile_of(spans, [100], rows=rows)) == ["elementwise", "optimiser"]


def test_a_compiled_program_says_what_a_fusion_computes():
    spans = [
        Span("ynn_fusion.4", 0, 10, source=SpanSource("jit(step)/transpose(jvp())/dot_general")),
        Span("ynn_fusion.4", 10, 20, source=SpanSource("jit(step)/jvp(Block)/layer_norm/reduce")),
        Span("loop_add_fusion", 20, 30, source=SpanSource("jit(step)/optimizer.update/add")),
        Span("loop_add_fusion", 30, 40),
    ]
    assert classes_of(profile_of(spans, [50])) == [
        "matrix product",
        "normalisation",
        "optimiser",
        "elementwise",
    ]


def test_a_library_that_a_compiled_program_calls_is_known_by_its_kernels():
    spans = [Span("nvjet_tst_128x256_64x4", 0, 10, source=SpanSource("custom-call"))]
    assert classes_of(profile_of(spans, [50])) == ["matrix product"]
