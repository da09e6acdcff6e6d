"""The layers of ResNet-50 in float64 and plain numpy: the definition that every framework is held against.

Each takes images as (images, channels, rows, columns) and gives its output and a function that turns the
gradient of the output into the gradients of its inputs. Written to be read, not to be fast.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Backward = Callable[[Array], tuple[Array, ...]]


def convolution(x: Array, weight: Array, stride: int) -> tuple[Array, Backward]:
    """No bias; padded on all sides alike by half the kernel."""
    outputs, _, kernel, _ = weight.shape
    columns, shape = _columns(x, kernel, stride)
    flat = weight.reshape(outputs, -1)
    y = (flat @ columns).reshape(outputs, *shape).swapaxes(0, 1)

    def backward(gradient: Array) -> tuple[Array, ...]:
        rows = gradient.swapaxes(0, 1).reshape(outputs, -1)
        return _images(flat.T @ rows, x.shape, kernel, stride), (rows @ columns.T).reshape(weight.shape)

    return y, backward


def batch_norm(x: Array, scale: Array, bias: Array, epsilon: float) -> tuple[Array, Backward]:
    """Normalised by the mean and the population variance of this batch alone."""
    axes = (0, 2, 3)
    mean, variance = moments(x)
    deviation = np.sqrt(variance + epsilon)[:, None, None]
    normal = (x - mean[:, None, None]) / deviation

    def backward(gradient: Array) -> tuple[Array, ...]:
        by_bias, by_scale = gradient.sum(axes), (gradient * normal).sum(axes)
        count = x.size / x.shape[1]
        centred = gradient - (by_bias[:, None, None] + normal * by_scale[:, None, None]) / count
        return scale[:, None, None] / deviation * centred, by_scale, by_bias

    return normal * scale[:, None, None] + bias[:, None, None], backward


def moments(x: Array) -> tuple[Array, Array]:
    """Mean and population variance of each channel."""
    return x.mean((0, 2, 3)), x.var((0, 2, 3))


def relu(x: Array) -> tuple[Array, Backward]:
    return np.maximum(x, 0.0), lambda gradient: (gradient * (x > 0),)


def max_pool(x: Array) -> tuple[Array, Backward]:
    """The largest of 3x3, every second; what lies outside the image never wins."""
    side = x.shape[2]
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-np.inf)
    half = (side + 1) // 2
    windows = np.stack([_shifted(padded, row, column, half, 2) for row in range(3) for column in range(3)])
    winner = windows.argmax(0)

    def backward(gradient: Array) -> tuple[Array, ...]:
        total = np.zeros_like(padded)
        for place in range(9):
            _shifted(total, place // 3, place % 3, half, 2)[...] += gradient * (winner == place)
        return (total[:, :, 1 : side + 1, 1 : side + 1],)

    return windows.max(0), backward


def mean_of_image(x: Array) -> tuple[Array, Backward]:
    pixels = x.shape[2] * x.shape[3]
    return x.mean((2, 3)), lambda gradient: (
        np.broadcast_to(gradient[:, :, None, None] / pixels, x.shape).copy(),
    )


def linear(x: Array, weight: Array, bias: Array) -> tuple[Array, Backward]:
    return x @ weight.T + bias, lambda gradient: (gradient @ weight, gradient.T @ x, gradient.sum(0))


def smoothed_cross_entropy(
    logits: Array, labels: NDArray[np.int64], smoothing: float
) -> tuple[float, Backward]:
    """Mean over the batch; the target is the label, mixed with the uniform distribution over all classes."""
    images, classes = logits.shape
    target = np.full(logits.shape, smoothing / classes)
    target[np.arange(images), labels] += 1 - smoothing
    shifted = logits - logits.max(1, keepdims=True)
    logarithms = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
    loss = -(target * logarithms).sum() / images
    return float(loss), lambda gradient: (gradient * (np.exp(logarithms) - target) / images,)


def _columns(x: Array, kernel: int, stride: int) -> tuple[Array, tuple[int, int, int]]:
    """Every place the kernel meets as a column: the convolution is then a matrix product."""
    images, channels, side, _ = x.shape
    padding, half = kernel // 2, (side + stride - 1) // stride
    padded = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    patches = np.stack(
        [_shifted(padded, row, column, half, stride) for row in range(kernel) for column in range(kernel)]
    )
    # (place, images, channels, rows, columns) to (channels, place, images, rows, columns)
    return patches.transpose(2, 0, 1, 3, 4).reshape(channels * kernel**2, -1), (images, half, half)


def _images(columns: Array, shape: tuple[int, ...], kernel: int, stride: int) -> Array:
    """The reverse of `_columns`: what each pixel gets from all the places that met it."""
    images, channels, side, _ = shape
    padding, half = kernel // 2, (side + stride - 1) // stride
    patches = columns.reshape(channels, kernel**2, images, half, half)
    total = np.zeros((images, channels, side + 2 * padding, side + 2 * padding))
    for place in range(kernel**2):
        target = _shifted(total, place // kernel, place % kernel, half, stride)
        target += patches[:, place].swapaxes(0, 1)
    return total[:, :, padding : padding + side, padding : padding + side]


def _shifted(padded: Array, row: int, column: int, half: int, stride: int) -> Array:
    """A view of every `stride`-th pixel, beginning at this place of the kernel."""
    last = stride * (half - 1) + 1
    return padded[:, :, row : row + last : stride, column : column + last : stride]
