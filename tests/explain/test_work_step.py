"""Work of a step: which operator counts, and in which class."""

from __future__ import annotations

import pytest
from builders_step import Row, Span, call, profile_of

from trainmark.explain.operator_cost import Work
from trainmark.explain.profile import DeviceKind, Operands, SpanSource
from trainmark.explain.step_work import completed, of_case, of_step
from trainmark.workloads import registry

MATRICES = Operands(((4, 8), (8, 16)), ("float", "float"))
PRODUCT = Row("aten::mm", 2, 10, operands=MATRICES)
GEMM = "ampere_sgemm_128x128_tn"


def work_of(spans, classes, rows, ends=(100,)):
    return of_step(profile_of(spans, ends, rows=rows), classes)


def test_an_operator_with_two_kernels_counts_once():
    rows = [PRODUCT, call(4, 1), call(6, 2)]
    spans = [Span(GEMM, 10, 20, launch=1), Span("splitKreduce", 20, 22, launch=2)]
    assert work_of(spans, ["matrix product"] * 2, rows)["matrix product"] == Work(1024, 896)


def test_a_step_has_the_mean_of_all_steps():
    rows = [PRODUCT, call(4, 1)]
    work = work_of([Span(GEMM, 10, 20, launch=1)], ["matrix product"], rows, ends=(50, 100))
    assert work["matrix product"].flop == 512


def test_the_product_inside_linear_counts_and_linear_not_again():
    outer = Row("aten::linear", 0, 12, operands=Operands(((4, 8), (16, 8)), ("float", "float")))
    rows = [outer, PRODUCT, call(4, 1)]
    assert work_of([Span(GEMM, 10, 20, launch=1)], ["matrix product"], rows)["matrix product"].flop == 1024


def test_linear_counts_where_it_launched_the_kernel_itself():
    outer = Row("aten::linear", 0, 12, operands=Operands(((4, 8), (16, 8)), ("float", "float")))
    rows = [outer, call(4, 1)]
    assert work_of([Span(GEMM, 10, 20, launch=1)], ["matrix product"], rows)["matrix product"].flop == 1024


def test_a_layout_copy_of_a_convolution_leaves_its_work_to_the_convolution():
    gradient = Operands(((2, 4, 4, 4), (2, 3, 8, 8), (4, 3, 3, 3)), ("float",) * 3)
    rows = [Row("aten::convolution_backward", 0, 10, operands=gradient), call(3, 1), call(5, 2)]
    spans = [Span("nchwToNhwc", 10, 40, launch=1), Span("dgrad", 40, 50, launch=2)]
    work = work_of(spans, ["copy", "convolution"], rows)
    assert work["convolution"].flop == 2 * 2 * 128 * 27
    assert work["copy"].flop is None


def test_a_class_of_which_a_part_cannot_be_counted_has_no_sums():
    rows = [PRODUCT, call(4, 1)]
    spans = [Span(GEMM, 10, 20, launch=1), Span(GEMM, 30, 40, launch=9)]
    work = work_of(spans, ["matrix product"] * 2, rows)["matrix product"]
    assert (work.flop, work.bytes, work.covered) == (None, None, 0.5)


def test_what_a_graph_replays_has_no_operands_and_takes_the_familys_flop():
    workload = registry.find("resnet50").workload
    spans = [Span("fprop", 10, 20, launch=1, in_graph=True)]
    by_operands = work_of(spans, ["convolution"], [])
    assert by_operands["convolution"].flop is None
    declared = of_case(workload, workload.defaults, 256)
    assert completed(by_operands, declared)["convolution"].flop == declared["convolution"].flop
    assert "matrix product" not in completed(by_operands, declared)


def test_an_instruction_of_a_compiled_program_brings_its_numbers_once():
    path = "jit(step)/dot_general"
    spans = [
        Span(GEMM, 0, 10, source=SpanSource(path, 1024, 896)),
        Span("splitK", 10, 12, source=SpanSource(path)),
    ]
    assert work_of(spans, ["matrix product"] * 2, [])["matrix product"] == Work(1024, 896)


def test_a_library_call_without_a_count_leaves_its_class_without_flop():
    spans = [Span(GEMM, 0, 10, source=SpanSource("custom-call", 0, 896))]
    assert work_of(spans, ["matrix product"], [])["matrix product"] == Work(None, 896)


@pytest.mark.parametrize(("name", "moved"), [("Memcpy DtoD (Device -> Device)", 2000), ("Memcpy HtoD", 1000)])
def test_a_copy_inside_the_device_reads_and_writes_its_memory(name, moved):
    spans = [Span(name, 10, 20, kind=DeviceKind.COPY, size=1000)]
    assert work_of(spans, ["copy"], [])["copy"].bytes == moved


def test_a_resnets_flop_by_class_are_its_declared_ones_without_the_images_gradient():
    workload = registry.find("resnet50").workload
    work = of_case(workload, workload.defaults, 2)
    stem = 2 * next(iter(workload.layers(workload.defaults))).work
    assert sum(part.flop for part in work.values()) == 2 * (workload.flops(workload.defaults) - stem)
    assert work["matrix product"].flop == 2 * 3 * 2 * 2048 * 1000


@pytest.mark.parametrize("recompute", ["none", "blocks"])
@pytest.mark.parametrize("family", ["gpt2", "bert", "llama"])
def test_a_transformers_flop_by_class_are_what_it_computes(family, recompute):
    workload = registry.find(family).workload
    axes = {**workload.defaults, "recompute": recompute}
    work = of_case(workload, axes, 3)
    assert work["matrix product"].flop + work["attention"].flop == pytest.approx(
        3 * workload.hardware_flops(axes)
    )


def test_a_causal_decoders_attention_is_counted_by_its_pairs():
    workload = registry.find("gpt2").workload
    axes = {**workload.defaults, "length": 128}
    # 12 layers of width 768: QKᵀ and PV, three passes, 128 · 129 / 2 pairs in 128 tokens.
    assert of_case(workload, axes, 128)["attention"].flop == 3 * 2 * 12 * 2 * 768 * 128 * 129 // 2


def test_fused_kernels_of_convolutions_have_no_flop_by_class():
    workload = registry.find("resnet50").workload
    assert of_case(workload, workload.defaults, 2, engine="fused") == {}


def test_flop_of_a_library_in_a_compiled_program_are_unknown_and_its_bytes_count():
    spans = [
        Span("sdpa_kernel", 0, 90, source=SpanSource("jit(step)/attention/custom-call", None, 500)),
        Span("loop_fusion", 90, 100, source=SpanSource("jit(step)/attention/mul", 0, 40)),
    ]
    work = of_step(profile_of(spans, [100]), ["attention"] * 2)["attention"]
    assert (work.flop, work.bytes) == (None, 540)


def test_an_operator_without_numbers_leaves_its_class_uncounted():
    profile = profile_of([Span("sgemm", 0, 90, source=SpanSource("dense/MatMul:MatMul"))], [100])
    assert of_step(profile, ["matrix product"])["matrix product"].covered == 0
