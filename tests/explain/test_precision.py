"""In which precision a program multiplies that says nothing of it."""

from dataclasses import replace

import pytest
from builders_step import Row, profile_of

from trainmark.explain.breakdown import precision_of, precision_of_operands, product_peak
from trainmark.explain.explanation import ClassTime, Kernel
from trainmark.explain.profile import Operands

MEASURED = {"fp32": 1e11, "bf16": 4e11, "bandwidth": 5e10}


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


def multiplying(*types, device="cpu"):
    rows = [
        Row("aten::mm", 10 * place, 10 * place + 5, operands=Operands(((4, 8), (8, 16)), (name, name)))
        for place, name in enumerate(types)
    ]
    adding = Row("aten::add", 90, 95, operands=Operands(((4, 8), (4, 8)), ("double", "double")))
    return replace(profile_of([], (100,), rows=[*rows, adding]), device=device)


@pytest.mark.parametrize(
    ("types", "precision"),
    [
        (("float",), "fp32"),
        (("c10::BFloat16", "c10::BFloat16", "float"), "bf16"),
        (("double",), None),
        ((), None),
    ],
)
def test_on_a_cpu_operands_tell_the_precision_of_most_products(types, precision):
    profile = multiplying(*types)
    assert precision_of_operands(profile) == precision
    assert product_peak(MEASURED, (), profile, None) == MEASURED.get(precision)


def test_of_operands_that_differ_the_first_tells():
    row = Row("aten::mm", 0, 5, operands=Operands(((4, 8), (8, 16)), ("c10::BFloat16", "float")))
    assert precision_of_operands(replace(profile_of([], (100,), rows=[row]), device="cpu")) == "bf16"


def test_the_detailed_pass_tells_where_there_is_one():
    assert product_peak(MEASURED, (), multiplying(), multiplying("c10::BFloat16")) == 4e11


def test_on_a_gpu_names_of_kernels_tell_and_operands_do_not():
    profile = multiplying("float", device="cuda")
    assert product_peak(MEASURED, (), profile, None) is None
    assert product_peak(MEASURED, products(Kernel("nvjet_tst_64x8", 5, 1)), profile, None) == 4e11


def test_the_only_precision_that_was_measured_is_taken_where_nothing_tells():
    assert product_peak({"fp32": 1e11, "bandwidth": 5e10}, (), multiplying(), None) == 1e11
    assert product_peak({"bandwidth": 5e10}, (), multiplying(), None) is None
