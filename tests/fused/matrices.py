"""Random matrices, norms and batch-norm gradients for kernels, and how far a result lies from its twin's."""

from __future__ import annotations

import torch

from trainmark.workloads.resnet50.fused import reference_ops
from trainmark.workloads.resnet50.fused.network import BatchNorm, BatchNormGrad, ConvNorm, ResidualSum

# Relative distance: float32 differs in the order of its sums, a half in the rounding of some elements.
CLOSE = {torch.float32: 2e-5, torch.float16: 2e-3}
ROWS = 150  # no multiple of any tile


def matrix(channels, kind, rows=ROWS):
    return torch.randn(rows, channels).to(kind)


def vector(channels):
    return torch.randn(channels)


def norm(channels):
    return BatchNorm(
        scale=torch.rand(channels) + 0.5,
        bias=torch.randn(channels),
        mean=torch.randn(channels) * 0.3,
        variance=torch.rand(channels) + 0.5,
        scale_gradient=torch.zeros(channels),
        bias_gradient=torch.zeros(channels),
    )


def normed(channels, kind, rows=ROWS):
    return reference_ops.statistics(matrix(channels, kind, rows), norm(channels))


def joined(channels, kind, rows=ROWS):
    return ResidualSum(normed(channels, kind, rows), matrix(channels, kind, rows))


def batch_norm_grad(channels, kind, *, rectify=False):
    numbers = vector(channels), vector(channels), vector(channels)
    return BatchNormGrad(matrix(channels, kind), normed(channels, kind), *numbers, rectify=rectify)


def convolution(outputs, inputs, kind):
    weight = (torch.randn(outputs, inputs) / inputs**0.5).to(kind)
    return ConvNorm(weight, torch.full((outputs, inputs), float("nan")), norm(outputs))


def assert_same(actual, expected, kind, times=1):
    actual, expected = actual.double(), expected.double()
    assert actual.shape == expected.shape
    distance = (actual - expected).norm() / expected.norm()
    assert distance < CLOSE[kind] * times, f"{distance:.1e}"
