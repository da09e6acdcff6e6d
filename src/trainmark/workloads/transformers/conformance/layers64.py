"""The layers of the transformers in plain numpy: the definition that every framework is compared with.

Each takes arrays, and indices and constants by name, and returns its output with a function that turns
the gradient of the output into those of the arrays. Written to be read, not to be fast. The reference
gives them float64; they keep the type that they are given. A tape applies them and plays them backward;
`Parts` has what the networks of the three families share.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import numpy as np

from trainmark.workloads.transformers.flops import TransformerShape

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


def cross_entropy(logits: Array, *, labels: Array) -> tuple[Array, Backward]:
    """Mean over the labels of the whole batch; -1 is none."""
    rows, flat = logits.reshape(-1, logits.shape[-1]), labels.reshape(-1)
    counted = np.flatnonzero(flat >= 0)
    shifted = rows - rows.max(-1, keepdims=True)
    logarithms = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    loss = -logarithms[counted, flat[counted]].sum() / len(counted)

    def backward(gradient: Array) -> tuple[Array, ...]:
        total = np.zeros_like(rows)
        total[counted] = np.exp(logarithms[counted])
        total[counted, flat[counted]] -= 1
        return ((gradient * total / len(counted)).reshape(logits.shape),)

    return np.asarray(loss), backward


def causal(tokens: int) -> Array:
    """Return which keys (columns) a query (row) sees: its own token and those before."""
    return np.tri(tokens, dtype=bool)


def within(lengths: Array, tokens: int) -> Array:
    """Return which keys every query of a sequence sees: those that are not padding."""
    return (np.arange(tokens) < lengths[:, None])[:, None, None, :]


def _over_rows(gradient: Array) -> Array:
    return gradient.reshape(-1, gradient.shape[-1]).sum(0)


def _over_group(gradient: Array, group: int) -> Array:
    sequences, heads, *rest = gradient.shape
    return gradient.reshape(sequences, heads // group, group, *rest).sum(2)


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


class Parts:
    """Layers with their weights by canonical names; a call applies a layer that has none.

    `model` is the family's module of constants.
    """

    def __init__(
        self, tape: Tape, weights: Mapping[str, TapeValue], model: ModuleType, shape: TransformerShape
    ) -> None:
        self.tape, self.weights, self.model, self.shape = tape, weights, model, shape

    def __call__(self, applied: Layer, *inputs: TapeValue, **constants: Any) -> TapeValue:
        return self.tape(applied, *inputs, **constants)

    def embedding(self, name: str, ids: Array) -> TapeValue:
        return self.tape(embedding, self.weights[f"{name}.weight"], ids=ids)

    def linear(self, name: str, x: TapeValue) -> TapeValue:
        names = (f"{name}.weight", f"{name}.bias")
        return self.tape(linear, x, *(self.weights[part] for part in names if part in self.weights))

    def norm(self, name: str, x: TapeValue) -> TapeValue:
        scale, bias = self.weights[f"{name}.scale"], self.weights.get(f"{name}.bias")
        if bias is None:
            return self.tape(rms_norm, x, scale, epsilon=self.model.NORM_EPSILON)
        return self.tape(layer_norm, x, scale, bias, epsilon=self.model.NORM_EPSILON)

    def heads(self, x: TapeValue, heads: int) -> TapeValue:
        return self.tape(split_heads, x, heads=heads)

    def attention(self, query: TapeValue, key: TapeValue, value: TapeValue, allowed: Array) -> TapeValue:
        """Attend with split heads and merge them."""
        return self.tape(merge_heads, self.tape(attention, query, key, value, allowed=allowed))

    def qkv_attention(self, block: str, x: TapeValue, allowed: Array) -> TapeValue:
        """Self-attention whose query, key and value come from one matrix, in that order."""
        together = self.linear(f"{block}.qkv", x)
        query, key, value = (
            self.heads(self.tape(part, together, index=index, parts=3), self.shape.heads)
            for index in range(3)
        )
        return self.linear(f"{block}.out", self.attention(query, key, value, allowed))

    def mlp(self, block: str, x: TapeValue, activation: Layer) -> TapeValue:
        return self.linear(f"{block}.down", self.tape(activation, self.linear(f"{block}.up", x)))


def positions(tokens: Array) -> Array:
    """Number the tokens of every sequence from 0."""
    return np.broadcast_to(np.arange(tokens.shape[1]), tokens.shape)
