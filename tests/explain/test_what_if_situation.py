"""What is read off kernel names where a user's program says nothing of its precision and layout."""

import pytest

from trainmark.explain.explanation import (
    Agreement,
    ClassTime,
    Explanation,
    IdleTime,
    Kernel,
    Memory,
    MemoryPart,
    Overlap,
    Peaks,
    Subject,
)
from trainmark.explain.what_if.situation import (
    DevicePeaks,
    Settings,
    Situation,
    is_layout_copy,
    precision_of,
    situation_of,
)


def products(*kernels):
    return (ClassTime("matrix product", 10, 10, 1, kernels=kernels),)


@pytest.mark.parametrize(
    ("name", "precision"),
    [
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1", "bf16"),
        ("nvjet_tst_128x256_64x4_1x2_h_bz_coopA_TNT", "bf16"),
        ("nvjet_sm90_tst_192x192_64x4_2x1_v_bz_coopB_bias_TNN", "bf16"),
        ("nvjet_sm90_hsh_256x128_64x4_1x2_h_bz_coopA_TNT", "amp"),
        ("nvjet_sm90_hss_64x64_64x13_1x2_h_bz_splitK_NTT", "amp"),
        ("void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_16x16_128x2>", "bf16"),
        ("void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, cutlass::half_t>>", "amp"),
        ("ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_nn", "amp"),
        ("turing_fp16_s1688gemm_fp16_256x128_ldg8_f2f_nt", "amp"),
        ("sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nhwc", "tf32"),
        ("void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x64_16x6_nn_align4>", "tf32"),
        ("ampere_sgemm_128x64_nn", "fp32"),
        ("void cutlass::Kernel2<cutlass_80_simt_sgemm_128x64_8x5_nn_align1>", "fp32"),
        ("void some_other_kernel<float>", None),
    ],
)
def test_a_product_is_known_by_the_operands_in_its_name(name, precision):
    assert precision_of(products(Kernel(name, 5, 1))) == precision


def test_the_precision_is_that_of_most_of_the_time():
    kernels = products(Kernel("ampere_sgemm_128x64_nn", 90, 1), Kernel("nvjet_tst_64x8", 10, 50))
    assert precision_of(kernels) == "fp32"


def test_kernels_of_other_classes_say_nothing_of_products():
    assert precision_of((ClassTime("copy", 10, 10, 1, kernels=(Kernel("bfloat16_copy", 10, 1),)),)) is None


@pytest.mark.parametrize("name", ["void cudnn::ops::nchwToNhwcKernel<__half>", "nhwcToNchwKernel"])
def test_cudnns_changes_of_layout_are_known_by_name(name):
    assert is_layout_copy(name)
    assert not is_layout_copy("vectorized_elementwise_kernel")


def test_an_explained_step_becomes_parts_that_add_up_to_the_step_timed_without_the_profiler():
    explanation = Explanation(
        subject=Subject("train.py"),
        steps=4,
        total=400,
        agreement=Agreement(profiled=1e-7, measured=0.98e-7),
        classes=(
            ClassTime("convolution", 200, 240, 40, kernels=(Kernel("nchwToNhwcKernel", 80, 8),)),
            ClassTime("matrix product", 60, 100, 8, kernels=(Kernel("ampere_sgemm_128x64_nn", 60, 8),)),
        ),
        overlaps=(Overlap(("convolution", "matrix product"), 40),),
        idle=(IdleTime("launch", 100, 12),),
        memory=Memory(100, None, (MemoryPart("weights", 30), MemoryPart("activations", 70))),
    )
    situation = situation_of(explanation, Settings(), "cuda")
    parts = sum(part.alone for part in situation.parts)
    assert parts + situation.overlap + sum(situation.idle.values()) == pytest.approx(situation.step)
    assert situation.parts[0].layout_copies == pytest.approx(80 / 400 * situation.step)
    assert (situation.launches, situation.gaps["launch"]) == (12, 3)
    assert situation.settings.precision == "fp32"
    assert (situation.memory, situation.fixed_memory) == (100, 30)


def test_a_peak_that_was_not_measured_follows_the_datasheets_ratio():
    sheet = DevicePeaks("H200 SXM", {"tf32": 494.5e12, "bf16": 989e12, "fp16": 989e12})
    situation = Situation(
        0.1, "cuda", settings=Settings(precision="tf32"), peaks=Peaks(400e12), datasheet=sheet
    )
    assert situation.product_peak("tf32") == 400e12
    assert situation.product_peak("amp") == situation.product_peak("bf16") == 800e12
    assert situation.product_peak("fp8") is None
