"""The operations of the passes as kernels in Triton; those that are missing here are PyTorch's."""

from trainmark.workloads.common.kernel_tuning import tuner
from trainmark.workloads.resnet50.fused.kernels.channels import apply, rectified
from trainmark.workloads.resnet50.fused.kernels.conv1x1.gradients import product_gradients
from trainmark.workloads.resnet50.fused.kernels.conv1x1.joining import join
from trainmark.workloads.resnet50.fused.kernels.conv1x1.product import product
from trainmark.workloads.resnet50.fused.kernels.conv1x1.widening import widen
from trainmark.workloads.resnet50.fused.kernels.conv1x1.widening_back import widen_back
from trainmark.workloads.resnet50.fused.kernels.head import head_back
from trainmark.workloads.resnet50.fused.kernels.norms import coefficients, statistics, sums
from trainmark.workloads.resnet50.fused.kernels.stem.pool import pool
from trainmark.workloads.resnet50.fused.kernels.stem.stem import fold, stem
from trainmark.workloads.resnet50.fused.kernels.stem.stem_back import stem_back
from trainmark.workloads.resnet50.fused.kernels.update import find_overflow, update
from trainmark.workloads.resnet50.fused.reference_ops import (
    convolution,
    convolution_back,
    fold_weight,
    unfold_weight,
)

fallbacks = tuner.fallbacks

__all__ = [
    "apply",
    "coefficients",
    "convolution",
    "convolution_back",
    "fallbacks",
    "find_overflow",
    "fold",
    "fold_weight",
    "head_back",
    "join",
    "pool",
    "product",
    "product_gradients",
    "rectified",
    "statistics",
    "stem",
    "stem_back",
    "sums",
    "unfold_weight",
    "update",
    "widen",
    "widen_back",
]
