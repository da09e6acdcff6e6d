"""ResNet-50 v1.5 in plain JAX; scopes name its blocks in profiles."""

import functools
from typing import NamedTuple

import jax
from jax import lax
from jax import numpy as jnp

from trainmark.workloads.resnet50.shared import recipe


class Pass(NamedTuple):
    """One forward pass: the weights by canonical name, and what the batch norms see of the batch.

    To train, they put it into `moments`; to evaluate, they find the running statistics there.
    """

    weights: dict
    moments: dict
    layout: str
    training: bool = True


def bottleneck(net, name, x, stride):
    y = jax.nn.relu(batch_norm(net, name + ".norm1", conv(net, name + ".conv1", x)))
    y = conv(net, name + ".conv2", y, stride)  # v1.5: the stride is here
    y = jax.nn.relu(batch_norm(net, name + ".norm2", y))
    y = batch_norm(net, name + ".norm3", conv(net, name + ".conv3", y))
    if name + ".shortcut.conv.weight" in net.weights:
        x = batch_norm(net, name + ".shortcut.norm", conv(net, name + ".shortcut.conv", x, stride))
    return jax.nn.relu(y + x)


def resnet50(net, x):
    x = jax.nn.relu(batch_norm(net, "stem.norm", conv(net, "stem.conv", x, 2)))
    x = max_pool(net, x)
    index = 0
    for stage, (depth, _) in enumerate(recipe.STAGES):
        for block in range(depth):
            name, stride = f"blocks.{index}", 2 if block == 0 and stage > 0 else 1
            with jax.named_scope(name):
                x = bottleneck(net, name, x, stride)
            index += 1
    x = x.mean(axis=(net.layout.index("H"), net.layout.index("W")))
    weight, bias = net.weights["classifier.weight"], net.weights["classifier.bias"]
    return x @ weight.astype(x.dtype).T + bias.astype(x.dtype)


def conv(net, name, x, stride=1):
    """In the precision of `x`. The layout names the axes; how they lie in memory is XLA's choice."""
    weight = net.weights[name + ".weight"].astype(x.dtype)
    border = weight.shape[-1] // 2
    axes = (net.layout, "OIHW", net.layout)
    with jax.named_scope(name.rpartition(".")[2]):
        return lax.conv_general_dilated(
            x, weight, (stride, stride), [(border, border)] * 2, dimension_numbers=axes
        )


def batch_norm(net, name, x):
    """In float32; the moments are of the batch to train, the running ones to evaluate."""
    with jax.named_scope(name.rpartition(".")[2] + ".batch_norm"):
        channel = net.layout.index("C")
        others = tuple(axis for axis in range(4) if axis != channel)
        along = functools.partial(jnp.expand_dims, axis=others)
        shifted = x.astype(jnp.float32)
        if net.training:
            # Both moments from one reading of `x`, as deviations from some pixel of each channel: without
            # that, the variance of a channel far from zero would be a small difference of two large numbers.
            middle = tuple(slice(None) if axis == channel else x.shape[axis] // 2 for axis in range(4))
            origin = lax.stop_gradient(x[middle].astype(jnp.float32))
            shifted = shifted - along(origin)
            mean = shifted.mean(others)
            variance = jnp.maximum((shifted**2).mean(others) - mean**2, 0.0)
            net.moments.update({name + ".mean": mean + origin, name + ".variance": variance})
        else:
            mean, variance = net.moments[name + ".mean"], net.moments[name + ".variance"]
        scale = net.weights[name + ".scale"] * lax.rsqrt(variance + recipe.BATCH_NORM_EPSILON)
        bias = net.weights[name + ".bias"] - mean * scale
        return (shifted * along(scale) + along(bias)).astype(x.dtype)


def max_pool(net, x):
    window = [3 if axis in "HW" else 1 for axis in net.layout]
    strides = [2 if axis in "HW" else 1 for axis in net.layout]
    border = [(1, 1) if axis in "HW" else (0, 0) for axis in net.layout]
    return lax.reduce_window(x, -jnp.inf, lax.max, window, strides, border)
