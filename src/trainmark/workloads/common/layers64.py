"""Layers in plain numpy: the definition that every framework is compared with. Harness side.

Each takes arrays, and indices and constants by name, and returns its output with a function that turns
the gradient of the output into those of the arrays. Written to be read, not to be fast. A reference
gives them float64; they keep the type that they are given. A tape applies them and plays them backward.
Sequences are (sequences, tokens, width), pictures (images, channels, rows, columns).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

Array = Any  # numpy's, of float64, or of float32 where a test looks at rounding
Backward = Callable[[Array], "tuple[Array, ...]"]

# Hendrycks and Gimpel 2016: the approximation of GELU by tanh.
GELU_FACTOR, GELU_CUBE = math.sqrt(2 / math.pi), 0.044715


def embedding(table: Array, *, ids: Array) -> tuple[Array, Backward]:
    def backward(gradient: Array) -> tuple[Array, ...]:
        total = np.zeros_like(table)
        np.add.at(total, ids, gradient)
        return (total,)

    return table[ids], backward


def addition(one: Array, other: Array) -> tuple[Array, Backward]:
    return one + other, lambda gradient: (gradient, gradient)


def product(one: Array, other: Array) -> tuple[Array, Backward]:
    return one * other, lambda gradient: (gradient * other, gradient * one)


def linear(x: Array, weight: Array, bias: Array | None = None) -> tuple[Array, Backward]:
    """Multiply the last axis by a weight of (outputs, inputs)."""

    def backward(gradient: Array) -> tuple[Array, ...]:
        rows = gradient.reshape(-1, weight.shape[0])
        by_weight = rows.T @ x.reshape(-1, weight.shape[1])
        return (gradient @ weight, by_weight, rows.sum(0))[: 2 if bias is None else 3]

    y = x @ weight.T
    return (y if bias is None else y + bias), backward


def layer_norm(x: Array, scale: Array, bias: Array, *, epsilon: float) -> tuple[Array, Backward]:
    """Normalise the last axis by its mean and population variance (Ba et al. 2016)."""
    deviation = np.sqrt(x.var(-1, keepdims=True) + epsilon)
    normal = (x - x.mean(-1, keepdims=True)) / deviation

    def backward(gradient: Array) -> tuple[Array, ...]:
        inner = gradient * scale
        centred = inner - inner.mean(-1, keepdims=True) - normal * (inner * normal).mean(-1, keepdims=True)
        return centred / deviation, _over_rows(gradient * normal), _over_rows(gradient)

    return normal * scale + bias, backward


def rms_norm(x: Array, scale: Array, *, epsilon: float) -> tuple[Array, Backward]:
    """Divide the last axis by its root mean square, epsilon under the root (Zhang and Sennrich 2019)."""
    size = np.sqrt(np.square(x).mean(-1, keepdims=True) + epsilon)
    normal = x / size

    def backward(gradient: Array) -> tuple[Array, ...]:
        inner = gradient * scale
        return (inner - normal * (inner * normal).mean(-1, keepdims=True)) / size, _over_rows(
            gradient * normal
        )

    return normal * scale, backward


def gelu_tanh(x: Array) -> tuple[Array, Backward]:
    curve = np.tanh(GELU_FACTOR * (x + GELU_CUBE * x**3))
    inner = GELU_FACTOR * (1 + 3 * GELU_CUBE * x**2)
    slope = 0.5 * (1 + curve) + 0.5 * x * (1 - curve**2) * inner
    return 0.5 * x * (1 + curve), lambda gradient: (gradient * slope,)


def gelu_erf(x: Array) -> tuple[Array, Backward]:
    """Multiply by the normal distribution's cumulative probability, exactly."""
    share = (0.5 * (1 + _erf(x / math.sqrt(2)))).astype(x.dtype)
    density = np.exp(-0.5 * x**2) / math.sqrt(2 * math.pi)
    return x * share, lambda gradient: (gradient * (share + x * density),)


def silu(x: Array) -> tuple[Array, Backward]:
    share = 1 / (1 + np.exp(-x))
    return x * share, lambda gradient: (gradient * share * (1 + x * (1 - share)),)


def tanh(x: Array) -> tuple[Array, Backward]:
    y = np.tanh(x)
    return y, lambda gradient: (gradient * (1 - y**2),)


def part(x: Array, *, index: int, parts: int) -> tuple[Array, Backward]:
    """Return one of so many equal parts of the last axis."""
    width = x.shape[-1] // parts
    place = np.s_[..., index * width : (index + 1) * width]

    def backward(gradient: Array) -> tuple[Array, ...]:
        total = np.zeros_like(x)
        total[place] = gradient
        return (total,)

    return x[place], backward


def split_heads(x: Array, *, heads: int) -> tuple[Array, Backward]:
    """From (sequences, tokens, width) to (sequences, heads, tokens, width of a head)."""
    y = x.reshape(*x.shape[:2], heads, -1).swapaxes(1, 2)
    return y, lambda gradient: (gradient.swapaxes(1, 2).reshape(x.shape),)


def merge_heads(x: Array) -> tuple[Array, Backward]:
    tokens_first = x.swapaxes(1, 2)
    y = tokens_first.reshape(*tokens_first.shape[:2], -1)
    return y, lambda gradient: (gradient.reshape(tokens_first.shape).swapaxes(1, 2),)


def rotary(x: Array, *, base: float) -> tuple[Array, Backward]:
    """Turn each pair of elements by its position's angle (Su et al. 2021); pairs lie half a head apart."""
    half = x.shape[-1] // 2
    angles = np.outer(np.arange(x.shape[-2]), base ** (-np.arange(half) / half))
    cosine, sine = np.cos(angles).astype(x.dtype), np.sin(angles).astype(x.dtype)

    def turn(pairs: Array, sign: float) -> Array:
        one, other = pairs[..., :half], pairs[..., half:]
        return np.concatenate(
            [one * cosine - sign * other * sine, other * cosine + sign * one * sine], axis=-1
        )

    return turn(x, 1.0), lambda gradient: (turn(gradient, -1.0),)


def attention(query: Array, key: Array, value: Array, *, allowed: Array) -> tuple[Array, Backward]:
    """Scaled dot-product attention of split heads; a query sees the keys that are `allowed`.

    Of grouped queries, consecutive heads share one head of keys and values.
    """
    group = query.shape[1] // key.shape[1]
    keys, values = np.repeat(key, group, axis=1), np.repeat(value, group, axis=1)
    scale = 1 / math.sqrt(query.shape[-1])
    scores = np.where(allowed, query @ keys.swapaxes(-1, -2) * scale, -np.inf)
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    shares = shares / shares.sum(-1, keepdims=True)

    def backward(gradient: Array) -> tuple[Array, ...]:
        by_shares = gradient @ values.swapaxes(-1, -2)
        by_scores = shares * (by_shares - (by_shares * shares).sum(-1, keepdims=True)) * scale
        by_keys, by_values = by_scores.swapaxes(-1, -2) @ query, shares.swapaxes(-1, -2) @ gradient
        return by_scores @ keys, _over_group(by_keys, group), _over_group(by_values, group)

    return shares @ values, backward


def gather(x: Array, *, positions: Array) -> tuple[Array, Backward]:
    """Return the tokens at these positions of each sequence."""
    places = np.arange(len(x))[:, None], positions

    def backward(gradient: Array) -> tuple[Array, ...]:
        total = np.zeros_like(x)
        np.add.at(total, places, gradient)
        return (total,)

    return x[places], backward


def cross_entropy(logits: Array, *, labels: Array, smoothing: float = 0.0) -> tuple[Array, Backward]:
    """Mean over the labels of the whole batch; -1 is none.

    The target is the label, mixed with the uniform distribution over all classes.
    """
    rows, flat = logits.reshape(-1, logits.shape[-1]), labels.reshape(-1)
    counted = np.flatnonzero(flat >= 0)
    shifted = rows - rows.max(-1, keepdims=True)
    logarithms = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    target = np.zeros_like(rows)
    target[counted] = smoothing / rows.shape[-1]
    target[counted, flat[counted]] += 1 - smoothing
    loss = -(target[counted] * logarithms[counted]).sum() / len(counted)

    def backward(gradient: Array) -> tuple[Array, ...]:
        total = np.zeros_like(rows)
        total[counted] = np.exp(logarithms[counted]) - target[counted]
        return ((gradient * total / len(counted)).reshape(logits.shape),)

    return np.asarray(loss), backward


def convolution(x: Array, weight: Array, *, stride: int) -> tuple[Array, Backward]:
    """Without bias; padded on all sides alike by half the kernel."""
    outputs, _, kernel, _ = weight.shape
    columns, shape = _im2col(x, kernel, stride)
    flat = weight.reshape(outputs, -1)
    y = (flat @ columns).reshape(outputs, *shape).swapaxes(0, 1)

    def backward(gradient: Array) -> tuple[Array, ...]:
        rows = gradient.swapaxes(0, 1).reshape(outputs, -1)
        return _col2im(flat.T @ rows, x.shape, kernel, stride), (rows @ columns.T).reshape(weight.shape)

    return y, backward


def batch_norm(x: Array, scale: Array, bias: Array, *, epsilon: float) -> tuple[Array, Backward]:
    """Normalise each channel by its mean and population variance in this batch (Ioffe and Szegedy 2015)."""
    axes = (0, 2, 3)
    deviation = np.sqrt(x.var(axes) + epsilon)[:, None, None]
    normal = (x - x.mean(axes)[:, None, None]) / deviation

    def backward(gradient: Array) -> tuple[Array, ...]:
        by_bias, by_scale = gradient.sum(axes), (gradient * normal).sum(axes)
        count = x.size / x.shape[1]
        centred = gradient - (by_bias[:, None, None] + normal * by_scale[:, None, None]) / count
        return scale[:, None, None] / deviation * centred, by_scale, by_bias

    return normal * scale[:, None, None] + bias[:, None, None], backward


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


def global_average_pool(x: Array) -> tuple[Array, Backward]:
    pixels = x.shape[2] * x.shape[3]
    return x.mean((2, 3)), lambda gradient: (
        np.broadcast_to(gradient[:, :, None, None] / pixels, x.shape).copy(),
    )


def _over_rows(gradient: Array) -> Array:
    return gradient.reshape(-1, gradient.shape[-1]).sum(0)


def _over_group(gradient: Array, group: int) -> Array:
    sequences, heads, *rest = gradient.shape
    return gradient.reshape(sequences, heads // group, group, *rest).sum(2)


def _im2col(x: Array, kernel: int, stride: int) -> tuple[Array, tuple[int, int, int]]:
    """Every place the kernel meets as a column: the convolution is then a matrix product."""
    images, channels, side, _ = x.shape
    padding, half = kernel // 2, (side + stride - 1) // stride
    padded = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    patches = np.stack(
        [_shifted(padded, row, column, half, stride) for row in range(kernel) for column in range(kernel)]
    )
    # (place, images, channels, rows, columns) to (channels, place, images, rows, columns)
    return patches.transpose(2, 0, 1, 3, 4).reshape(channels * kernel**2, -1), (images, half, half)


def _col2im(columns: Array, shape: tuple[int, ...], kernel: int, stride: int) -> Array:
    """The reverse of `_im2col`: what each pixel gets from all the places that met it."""
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


_erf = np.vectorize(math.erf, otypes=[np.float64])


Layer = Callable[..., "tuple[Array, Backward]"]


class TapeValue:
    """An array on the tape, and the gradient of the loss by it once `Tape.backward` has run."""

    def __init__(self, array: Array) -> None:
        self.array = array
        self.gradient = np.zeros_like(array)


class Tape:
    """The layers of one forward pass, in order."""

    def __init__(self) -> None:
        self._applied: list[tuple[TapeValue, tuple[TapeValue, ...], Backward]] = []

    def __call__(self, layer: Layer, *inputs: TapeValue, **constants: Any) -> TapeValue:
        """Apply a layer of layers64 to values; what it takes by name is not differentiated."""
        array, backward = layer(*(value.array for value in inputs), **constants)
        output = TapeValue(array)
        self._applied.append((output, inputs, backward))
        return output

    def backward(self, loss: TapeValue) -> None:
        """Give every value that the loss depends on its gradient."""
        loss.gradient = np.ones_like(loss.array)
        for output, inputs, backward in reversed(self._applied):
            for value, gradient in zip(inputs, backward(output.gradient), strict=True):
                value.gradient = value.gradient + gradient
