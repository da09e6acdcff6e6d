"""The operations of the passes as Triton kernels; those that are missing here are PyTorch's.

The update of all weights in one pass, and the search for an overflow before it, are here themselves.
"""

import triton
import triton.language as tl

from trainmark.workloads.common.kernel_tuning import tuner
from trainmark.workloads.resnet50.fused.batch_norm import (
    batch_norm_backward,
    bn_relu,
    coefficients,
    statistics,
    sums,
)
from trainmark.workloads.resnet50.fused.conv1x1 import conv1x1, residual_add
from trainmark.workloads.resnet50.fused.dgrad_wgrad import conv1x1_backward
from trainmark.workloads.resnet50.fused.expansion import expand, expand_backward
from trainmark.workloads.resnet50.fused.reference_ops import (
    conv3x3,
    conv3x3_backward,
    fold_weight,
    unfold_weight,
)
from trainmark.workloads.resnet50.fused.stem import fold, head_backward, pool, stem, stem_backward

BLOCK = 4096


@triton.jit
def _find_overflow(gradient, overflow, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    g = tl.load(gradient + at, mask=at < count, other=0.0)
    # Infinite or not a number: what is neither less than the largest float nor equal to it.
    bad = tl.sum(tl.where(tl.abs(g) <= 3.4028234663852886e38, 0, 1), axis=0)
    if bad > 0:
        tl.store(overflow, 1.0)


def find_overflow(gradient, overflow):
    """Sets `overflow` to one where any gradient is infinite or not a number."""
    overflow.zero_()
    count = gradient.numel()
    _find_overflow[(triton.cdiv(count, BLOCK),)](gradient, overflow, count, BLOCK)


@triton.jit
def _update(
    master, momentum, gradient, half, rate, shrink, overflow, inertia, decay, decayed, count,
    copies: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    if tl.load(overflow) == 0.0:
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        there = at < count
        w = tl.load(master + at, mask=there)
        g = tl.load(gradient + at, mask=there) * tl.load(shrink)
        g += tl.where(at < decayed, decay, 0.0) * w
        v = inertia * tl.load(momentum + at, mask=there) + g
        w -= tl.load(rate) * v
        tl.store(momentum + at, v, mask=there)
        tl.store(master + at, w, mask=there)
        if copies:
            tl.store(half + at, w.to(half.dtype.element_ty), mask=there)


def update(parameters, rate, shrink, overflow, inertia, decay):
    """SGD with momentum; `shrink` undoes the loss scale, and nothing moves where an overflow was found."""
    count = parameters.master.numel()
    _update[(triton.cdiv(count, BLOCK),)](
        parameters.master, parameters.momentum, parameters.gradient, parameters.half, rate, shrink, overflow,
        inertia, decay, parameters.decayed, count, parameters.half is not parameters.master, BLOCK,
    )  # fmt: skip


fallbacks = tuner.fallbacks

__all__ = [
    "batch_norm_backward",
    "bn_relu",
    "coefficients",
    "conv1x1",
    "conv1x1_backward",
    "conv3x3",
    "conv3x3_backward",
    "expand",
    "expand_backward",
    "fallbacks",
    "find_overflow",
    "fold",
    "fold_weight",
    "head_backward",
    "pool",
    "residual_add",
    "statistics",
    "stem",
    "stem_backward",
    "sums",
    "unfold_weight",
    "update",
]
