"""ResNet-50 v1.5 and its optimizer in float64: what five steps must give, on one rank and on two.

Each layer takes images as (images, channels, rows, columns) and gives its output and a function that
turns the gradient of the output into the gradients of its inputs. Written to be read, not to be fast.

python -m trainmark.workloads.resnet50.conformance.reference     writes reference.json anew, in a minute
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainmark.workloads.resnet50.shared import recipe, tensors

Array = NDArray[np.float64]
Backward = Callable[[Array], tuple[Array, ...]]


def convolution(x: Array, weight: Array, stride: int) -> tuple[Array, Backward]:
    """No bias; padded on all sides alike by half the kernel."""
    outputs, _, kernel, _ = weight.shape
    columns, shape = _im2col(x, kernel, stride)
    flat = weight.reshape(outputs, -1)
    y = (flat @ columns).reshape(outputs, *shape).swapaxes(0, 1)

    def backward(gradient: Array) -> tuple[Array, ...]:
        rows = gradient.swapaxes(0, 1).reshape(outputs, -1)
        return _col2im(flat.T @ rows, x.shape, kernel, stride), (rows @ columns.T).reshape(weight.shape)

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


def global_average_pool(x: Array) -> tuple[Array, Backward]:
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


FILE = Path(__file__).with_name("reference.json")
RANKS = (1, 2)

Labels = NDArray[np.int64]
Weights = dict[str, Array]
Gradients = Callable[[Array], Array]


@dataclass(frozen=True)
class ReferencePass:
    """One forward and backward pass: `moments` are each batch norm's mean, variance and count of values."""

    loss: float
    gradients: Weights
    moments: dict[str, tuple[Array, Array, int]]


class ReferenceNetwork:
    """The forward pass, written down so that `gradients` can walk it backward."""

    def __init__(self, weights: Mapping[str, Array]) -> None:
        self.weights = weights
        self.gradients: Weights = {}
        self.moments: dict[str, tuple[Array, Array, int]] = {}

    def run(self, images: Array, labels: Labels) -> ReferencePass:
        x, back_stem = self._conv_norm("stem.conv", "stem.norm", images, 2)
        x, back_relu = relu(x)
        x, back_pool = max_pool(x)
        backs = []
        for index, stride in enumerate(strides()):
            x, back = self._block(f"blocks.{index}", x, stride)
            backs.append(back)
        x, back_mean = global_average_pool(x)
        weight, bias = self.weights["classifier.weight"], self.weights["classifier.bias"]
        x, back_linear = linear(x, weight, bias)
        loss, back_loss = smoothed_cross_entropy(x, labels, recipe.STANDARD.label_smoothing)

        (gradient,) = back_loss(np.ones(()))
        gradient, by_weight, by_bias = back_linear(gradient)
        self.gradients |= {"classifier.weight": by_weight, "classifier.bias": by_bias}
        (gradient,) = back_mean(gradient)
        for back in reversed(backs):
            gradient = back(gradient)
        (gradient,) = back_pool(gradient)
        (gradient,) = back_relu(gradient)
        back_stem(gradient)
        return ReferencePass(loss, self.gradients, self.moments)

    def _block(self, name: str, x: Array, stride: int) -> tuple[Array, Gradients]:
        y, back1 = self._conv_norm(f"{name}.conv1", f"{name}.norm1", x, 1)
        y, relu1 = relu(y)
        y, back2 = self._conv_norm(f"{name}.conv2", f"{name}.norm2", y, stride)
        y, relu2 = relu(y)
        y, back3 = self._conv_norm(f"{name}.conv3", f"{name}.norm3", y, 1)
        shortcut = x
        back_shortcut: Gradients = _unchanged
        if f"{name}.shortcut.conv.weight" in self.weights:
            around = f"{name}.shortcut.conv", f"{name}.shortcut.norm"
            shortcut, back_shortcut = self._conv_norm(*around, x, stride)
        y, relu3 = relu(y + shortcut)

        def backward(gradient: Array) -> Array:
            (gradient,) = relu3(gradient)
            inner = back3(gradient)
            inner = back2(relu2(inner)[0])
            inner = back1(relu1(inner)[0])
            return inner + back_shortcut(gradient)

        return y, backward

    def _conv_norm(self, conv: str, norm: str, x: Array, stride: int) -> tuple[Array, Gradients]:
        y, back_conv = convolution(x, self.weights[f"{conv}.weight"], stride)
        self.moments[norm] = (*moments(y), y.size // y.shape[1])
        scale, bias = self.weights[f"{norm}.scale"], self.weights[f"{norm}.bias"]
        y, back_norm = batch_norm(y, scale, bias, recipe.BATCH_NORM_EPSILON)

        def backward(gradient: Array) -> Array:
            gradient, self.gradients[f"{norm}.scale"], self.gradients[f"{norm}.bias"] = back_norm(gradient)
            gradient, self.gradients[f"{conv}.weight"] = back_conv(gradient)
            return gradient

        return y, backward


def _unchanged(gradient: Array) -> Array:
    return gradient


def strides() -> list[int]:
    """Of the sixteen blocks: the first of every stage but the first halves the image, in its 3x3."""
    return [
        2 if block == 0 and stage else 1
        for stage, (blocks, _) in enumerate(recipe.STAGES)
        for block in range(blocks)
    ]


class ReferenceTraining:
    """Data-parallel training: the mean of the ranks' gradients, while batch norm stays each rank's own."""

    def __init__(self, weights: Mapping[str, NDArray[np.float32]], ranks: int) -> None:
        values = {name: value.astype(np.float64) for name, value in weights.items()}
        statistics = {name: value for name, value in values.items() if tensors.is_statistic(name)}
        self.weights = {name: value for name, value in values.items() if name not in statistics}
        self.statistics = [dict(statistics) for _ in range(ranks)]
        self.unbiased = [dict(statistics) for _ in range(ranks)]
        self.momenta = {name: np.zeros_like(value) for name, value in self.weights.items()}

    def step(self, shards: list[tuple[Array, Labels]], rate: float) -> list[float]:
        """The ranks' own losses."""
        passes = [ReferenceNetwork(self.weights).run(*shard) for shard in shards]
        for rank, done in enumerate(passes):
            self._remember(rank, done)
        for name, weight in self.weights.items():
            gradient = sum(done.gradients[name] for done in passes) / len(passes)
            if tensors.is_decayed(name):
                gradient = gradient + recipe.STANDARD.weight_decay * weight
            self.momenta[name] = recipe.STANDARD.momentum * self.momenta[name] + gradient
            self.weights[name] = weight - rate * self.momenta[name]
        return [done.loss for done in passes]

    def _remember(self, rank: int, done: ReferencePass) -> None:
        share = recipe.BATCH_NORM_MOMENTUM
        for norm, (mean, variance, count) in done.moments.items():
            for statistics, factor in ((self.statistics, 1.0), (self.unbiased, count / (count - 1))):
                for part, new in (("mean", mean), ("variance", variance * factor)):
                    name = f"{norm}.{part}"
                    statistics[rank][name] = (1 - share) * statistics[rank][name] + share * new


def observe(ranks: int) -> list[dict[str, Any]]:
    """What each rank must show: the same that a framework's training is asked for."""
    start = tensors.initial_weights()
    shards = [_shard(rank) for rank in range(ranks)]
    probed = ReferenceTraining(start, ranks)
    probed.step(shards, tensors.PROBE_RATE)
    training = ReferenceTraining(start, ranks)
    global_batch = ranks * tensors.BATCH
    losses = [
        training.step(shards, recipe.STANDARD.learning_rate(step, global_batch, tensors.TRAINING_IMAGES))
        for step in range(tensors.STEPS)
    ]
    return [
        _recorded_parts(
            tensors.summary(
                start,
                {**probed.weights, **probed.statistics[rank]},
                {**training.weights, **training.statistics[rank]},
                [step[rank] for step in losses],
            )
            | {
                "sample_statistics": {
                    name: tensors.sketch(name, value) for name, value in training.unbiased[rank].items()
                }
            }
        )
        for rank in range(ranks)
    ]


def _recorded_parts(shown: dict[str, Any]) -> dict[str, Any]:
    """Without what follows from the recipe, and in nine digits: a hundred times what float32 tells apart."""
    parts = ("losses", "gradient_norms", "gradients", "moved", "statistics", "sample_statistics")
    return {part: _rounded(shown[part]) for part in parts}


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return float(f"{value:.9g}")


def _shard(rank: int) -> tuple[Array, Labels]:
    images, labels = tensors.conformance_batch(rank, tensors.BATCH, tensors.IMAGE_SIZE)
    return images.astype(np.float64), labels


@cache
def expected(ranks: int) -> list[dict[str, Any]]:
    """The reference as shipped, by rank."""
    shipped: dict[str, list[dict[str, Any]]] = json.loads(FILE.read_text(encoding="utf-8"))
    return shipped[str(ranks)]


def main() -> None:
    computed = {str(ranks): observe(ranks) for ranks in RANKS}
    lines = json.dumps(computed, separators=(",", ":")).replace("],", "],\n")
    FILE.write_text(lines + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
