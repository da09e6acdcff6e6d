"""The class of a kernel or operator by its name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from trainmark.explain.kernel_classes import CLASSES, NAMES, class_of, class_of_source

ELEMENTWISE = "void at::native::vectorized_elementwise_kernel<4, at::native::{}<float>, 3>(int)"
KERNELS = {
    "convolution": (
        "sm90_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x64_kernel_cudnn",
        "sm80_xmma_wgrad_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nhwc_execute_kernel_cudnn_train",
        "void cutlass__5x_cudnn::Kernel<cutlass_tensorop_bf16_s16816dgrad_optimized_bf16_128x128>(P)",
        "_ZN19cutlass_cudnn_train6KernelINS_4conv6kernel23ImplicitGemmConvolutionINS1_11threadblock_PermuteILi1E",
        "cudnn_ampere_scudnn_128x64_relu_xregs_large_nn_v1",
        "sm90_xmma_gemm_f16f16_f16f32_f32_nn_n_tilesize64x128x64_kernel__5x_cudnn",
        "igemm_wrw_gtcx3_nhwc_bf16_bx0_ex1_bt64x64x64_wt32x32x8_gkgs",
        "triton_tem_fused_convolution_3",
        "_dgrad_wgrad",
        "_together",
        "aten::mkldnn_convolution",
        "ConvolutionBackward0",
    ),
    "matrix product": (
        "nvjet_tst_128x256_64x4_2x1_v_bz_coopA_TNT",
        "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize64x64x64_warpgroupsize1x1x1_kernel__5x_cublas",
        "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_bf16_256x128_64x3_tn_align2>(Params)",
        "ampere_sgemm_128x128_tn",
        "void cublasLt::splitKreduce_kernel<32, 16, int, float, float, float, float, true>(Params)",
        "Cijk_Ailk_Bljk_BBS_BH_Bias_HAS_SAV_UserArgs_MT16x16x256_MI16x16x1_SN",
        "triton_tem_fused_addmm_relu_0",
        "gemm_fusion_dot_12_0",
        "dot.3",
        "aten::addmm",
        "autograd::engine::evaluate_function: AddmmBackward0",
    ),
    "attention": (
        "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4>, false, true>(P)",
        "void pytorch_flash::flash_bwd_convert_dq_kernel<pytorch_flash::Flash_bwd_kernel_traits<64, 64>>(P)",
        "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_128x128x64_4x1x1_kernel0_0",
        "fmha_cutlassF_bf16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel)",
        "triton_tem_fused_flex_attention_2",
        "aten::_scaled_dot_product_flash_attention_for_cpu",
    ),
    "normalisation": (
        "void cudnn::bn_bw_1C11_kernel_new<float, float, float2, 512, true, 1>(float, float)",
        "void at::native::batch_norm_collect_statistics_channels_last_kernel<at::native::Var, float>(P)",
        "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>(int)",
        "void at::native::(anonymous namespace)::GammaBetaBackwardCUDAKernel<float, float>(long, long)",
        "triton_red_fused__native_batch_norm_legit_functional_relu_7",
        "triton_poi_fused__native_batch_norm_legit_functional_add_relu_12",
        "triton_red_fused_add_mean_mul_pow_rsqrt_0",
        "_finish_statistics",
        "aten::native_layer_norm_backward",
    ),
    "elementwise": (
        "cupy_subtract__float32_float32_float32",
        "cupy_maximum__float32_float_float32",
        ELEMENTWISE.format("CUDAFunctor_add"),
        "void at::native::unrolled_elementwise_kernel<at::native::CUDAFunctorOnSelf_add<float>, 2>(int)",
        "triton_poi_fused_convolution_relu_3",
        "loop_convert_fusion_2",
        "loop_add_fusion_3",
        "wrapped_convert",
        "multiply_add_fusion.1",
        "graph_0_cpp_fused_add_relu_2",
        "aten::gelu",
        "ReluBackward0",
        "torch::autograd::AccumulateGrad",
    ),
    "reduction": (
        "cupy_sum",
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, MeanOps<float> > >(R)",
        "void at::native::(anonymous namespace)::max_pool_forward_nhwc<float, float>(float const*)",
        "void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, true, false>(float*)",
        "triton_per_fused__log_softmax_nll_loss_forward_2",
        "input_reduce_fusion_2",
        "reduce-window.4",
        "aten::sum",
    ),
    "optimiser": (
        "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<TensorListMetadata<4>>(T)",
        "triton_for_fused_0",
        "aten::_fused_adamw_",
        "_update",
    ),
    "copy": (
        "Memcpy HtoD (Pinned -> Device)",
        "Memset (Device)",
        "void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true, (cudnnKernelDataType_t)2>(P)",
        "batched_transpose_32x16_half",
        "void at::native::(anonymous namespace)::CatArrayBatchedCopy<OpaqueType<2u>, unsigned int>(O)",
        "void at::native::elementwise_kernel<128, 4, gpu_kernel_impl_nocast<direct_copy_kernel_cuda(I)>>",
        "triton_poi_fused__to_copy_1",
        "loop_transpose_fusion",
        "copy.3",
        "aten::copy_",
    ),
    "communication": (
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)",
        "all-reduce.1",
        "gloo:all_reduce",
        "nccl:all_gather",
    ),
    "other": ("unheard_of_kernel", "custom-call.3"),
}
OWN = Path(NAMES).parents[1] / "workloads"


@pytest.mark.parametrize(
    ("name", "kernel_class"), [(name, group) for group, names in KERNELS.items() for name in names]
)
def test_a_name_alone_gives_its_class(name, kernel_class):
    assert class_of(name) == kernel_class


def test_every_class_occurs_among_these_names():
    assert set(KERNELS) == set(CLASSES)


@pytest.mark.parametrize(
    ("kernel", "operator", "kernel_class"),
    [
        ("cutlass_80_tensorop_s1688gemm_256x64_16x4_nn_align4", "aten::cudnn_convolution", "convolution"),
        ("ampere_sgemm_128x128_tn", "aten::addmm", "matrix product"),
        (ELEMENTWISE.format("CUDAFunctor_add"), "aten::native_batch_norm", "normalisation"),
        (ELEMENTWISE.format("FillFunctor"), "aten::zero_", "copy"),
        ("void cudnn::ops::nchwToNhwcKernel<float>(P)", "aten::cudnn_convolution", "copy"),
        ("cudnn_generated_fort_native_sm90_knob_3_kernel0", "aten::convolution_backward", "convolution"),
        ("loop_multiply_fusion", "jit(step)/jvp(Block)/layer_norm/mul", "normalisation"),
        ("unknown_kernel", "jit(step)/transpose(jvp(Block))/dot_general", "matrix product"),
    ],
)
def test_the_operator_decides_what_the_kernel_leaves_open(kernel, operator, kernel_class):
    assert class_of(kernel, operator) == kernel_class


def test_an_elementwise_kernel_inside_the_optimizer_is_of_the_optimiser():
    kernel, annotation = ELEMENTWISE.format("CUDAFunctor_add"), "Optimizer.step#AdamW.step"
    assert class_of(kernel, "aten::add_", (annotation,)) == "optimiser"
    assert class_of("ampere_sgemm_128x128_tn", "aten::mm", (annotation,)) == "matrix product"


def test_products_and_softmax_of_unfused_attention_are_attention():
    around = ("aten::_scaled_dot_product_attention_math",)
    assert class_of("ampere_sgemm_128x128_tn", "aten::bmm", around) == "attention"
    assert class_of("softmax_warp_forward<float>", "aten::_softmax", around) == "attention"


def test_every_kernel_that_this_package_launches_has_a_class():
    """Kernels are launched as `_name[grid](…)` or handed to a launcher; what they call is called by name."""
    launched = set()
    for path in OWN.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        kernels = re.findall(r"@triton\.jit\ndef (\w+)\(", text)
        launched |= {name for name in kernels if re.search(rf"\b{name}\b(?!\()", text)}
    assert "_conv1x1" in launched
    assert {name for name in launched if class_of(name) == "other"} == set()


@pytest.mark.parametrize(
    ("name", "path", "expected"),
    [
        ("ynn_fusion.3", "jit(step)/transpose(jvp(Dense_0))/dot_general", "matrix product"),
        ("fusion.4", "jit(step)/transpose(jvp(ConvNet))/Conv_1/conv_general_dilated", "convolution"),
        ("loop_fusion", "jit(step)/transpose(jvp(Dense_0))/mul", "elementwise"),
        ("input_reduce_fusion", "jit(step)/transpose(jvp(Dense_0))/reduce_sum", "reduction"),
        ("loop_fusion.1", "jit(step)/jvp(Block_3)/LayerNorm_0/rsqrt", "normalisation"),
        ("loop_fusion.2", "jit(step)/jvp(Block_3)/LayerNorm_0/dot_general", "matrix product"),
        ("ynn_fusion", "jit(step)/jvp(vmap(BTNH,BSNH->BNTS))/dot_general", "attention"),
        ("loop_fusion.3", "jit(step)/optimizer_step/mul", "optimiser"),
        ("wrapped_transpose", "jit(step)/transpose(jvp(Dense_0))/transpose", "copy"),
        ("BiasAddGrad", "gradient_tape/conv1/BiasAdd_4/BiasAddGrad", "reduction"),
        ("CollectiveReduceV2", "CollectiveReduceV2_3", "communication"),
        ("RealDiv", "gradient_tape/truediv_2", "elementwise"),
        ("Tile", "gradient_tape/Tile", "copy"),
        ("ReadVariableOp", "add_3/ReadVariableOp", "copy"),
        ("AssignSubVariableOp", "AssignSubVariableOp_7", "optimiser"),
        ("ResourceApplyAdam", "Adam/Adam/update/ResourceApplyAdam", "optimiser"),
        ("Mul", "model/layer_norm/mul", "normalisation"),
        ("Mul", "StatefulPartitionedCall/adam/Mul_19", "optimiser"),
        ("_FusedMatMul", "BiasAdd_7", "matrix product"),
        ("Conv2DBackpropFilter", "gradient_tape/Conv2D_9/Conv2DBackpropFilter", "convolution"),
        ("_MklNativeConv2DBackpropFilter", "gradient_tape/Conv2D_9/Conv2DBackpropFilter", "convolution"),
        ("_MklMatMul", "matmul", "matrix product"),
        ("_MklRelu6Grad", "gradient_tape/Relu6Grad", "elementwise"),
        ("ampere_sgemm_128x128_tn", "gradient_tape/sum_of_all/MatMul_1:MatMul", "matrix product"),
    ],
)
def test_a_path_is_read_by_its_leaf_then_by_its_scopes(name, path, expected):
    assert class_of_source(name, path) == expected
