"""ResNet-50 v1.5 and its optimiser in float64: what five steps of training must give, on one rank and on two.

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

from trainmark.workloads.resnet50.conformance import layers64 as layer
from trainmark.workloads.resnet50.conformance.layers64 import Array
from trainmark.workloads.resnet50.shared import conformance, recipe, tensors

FILE = Path(__file__).with_name("reference.json")
RANKS = (1, 2)

Labels = NDArray[np.int64]
Weights = dict[str, Array]
Gradients = Callable[[Array], Array]


@dataclass(frozen=True)
class Pass:
    """One forward and backward pass: `moments` are each batch norm's mean, variance and count of values."""

    loss: float
    gradients: Weights
    moments: dict[str, tuple[Array, Array, int]]


class Network:
    """The forward pass, written down so that `gradients` can walk it backward."""

    def __init__(self, weights: Mapping[str, Array]) -> None:
        self.weights = weights
        self.gradients: Weights = {}
        self.moments: dict[str, tuple[Array, Array, int]] = {}

    def run(self, images: Array, labels: Labels) -> Pass:
        x, back_stem = self._conv_norm("stem.conv", "stem.norm", images, 2)
        x, back_relu = layer.relu(x)
        x, back_pool = layer.max_pool(x)
        backs = []
        for index, stride in enumerate(strides()):
            x, back = self._block(f"blocks.{index}", x, stride)
            backs.append(back)
        x, back_mean = layer.mean_of_image(x)
        weight, bias = self.weights["classifier.weight"], self.weights["classifier.bias"]
        x, back_linear = layer.linear(x, weight, bias)
        loss, back_loss = layer.smoothed_cross_entropy(x, labels, recipe.STANDARD.label_smoothing)

        (gradient,) = back_loss(np.ones(()))
        gradient, by_weight, by_bias = back_linear(gradient)
        self.gradients |= {"classifier.weight": by_weight, "classifier.bias": by_bias}
        (gradient,) = back_mean(gradient)
        for back in reversed(backs):
            gradient = back(gradient)
        (gradient,) = back_pool(gradient)
        (gradient,) = back_relu(gradient)
        back_stem(gradient)
        return Pass(loss, self.gradients, self.moments)

    def _block(self, name: str, x: Array, stride: int) -> tuple[Array, Gradients]:
        y, back1 = self._conv_norm(f"{name}.conv1", f"{name}.norm1", x, 1)
        y, relu1 = layer.relu(y)
        y, back2 = self._conv_norm(f"{name}.conv2", f"{name}.norm2", y, stride)
        y, relu2 = layer.relu(y)
        y, back3 = self._conv_norm(f"{name}.conv3", f"{name}.norm3", y, 1)
        shortcut = x
        back_shortcut: Gradients = _unchanged
        if f"{name}.shortcut.conv.weight" in self.weights:
            around = f"{name}.shortcut.conv", f"{name}.shortcut.norm"
            shortcut, back_shortcut = self._conv_norm(*around, x, stride)
        y, relu3 = layer.relu(y + shortcut)

        def backward(gradient: Array) -> Array:
            (gradient,) = relu3(gradient)
            inner = back3(gradient)
            inner = back2(relu2(inner)[0])
            inner = back1(relu1(inner)[0])
            return inner + back_shortcut(gradient)

        return y, backward

    def _conv_norm(self, conv: str, norm: str, x: Array, stride: int) -> tuple[Array, Gradients]:
        y, back_conv = layer.convolution(x, self.weights[f"{conv}.weight"], stride)
        self.moments[norm] = (*layer.moments(y), y.size // y.shape[1])
        scale, bias = self.weights[f"{norm}.scale"], self.weights[f"{norm}.bias"]
        y, back_norm = layer.batch_norm(y, scale, bias, recipe.BATCH_NORM_EPSILON)

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


class Training:
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
        passes = [Network(self.weights).run(*shard) for shard in shards]
        for rank, done in enumerate(passes):
            self._remember(rank, done)
        for name, weight in self.weights.items():
            gradient = sum(done.gradients[name] for done in passes) / len(passes)
            if tensors.is_decayed(name):
                gradient = gradient + recipe.STANDARD.weight_decay * weight
            self.momenta[name] = recipe.STANDARD.momentum * self.momenta[name] + gradient
            self.weights[name] = weight - rate * self.momenta[name]
        return [done.loss for done in passes]

    def _remember(self, rank: int, done: Pass) -> None:
        share = recipe.BATCH_NORM_MOMENTUM
        for norm, (mean, variance, count) in done.moments.items():
            for statistics, factor in ((self.statistics, 1.0), (self.unbiased, count / (count - 1))):
                for part, new in (("mean", mean), ("variance", variance * factor)):
                    name = f"{norm}.{part}"
                    statistics[rank][name] = (1 - share) * statistics[rank][name] + share * new


def observe(ranks: int) -> list[dict[str, Any]]:
    """What each rank must show: the same that a framework's training is asked for."""
    start = tensors.initial()
    shards = [_shard(rank) for rank in range(ranks)]
    probed = Training(start, ranks)
    probed.step(shards, conformance.PROBE_RATE)
    training = Training(start, ranks)
    global_batch = ranks * conformance.BATCH
    losses = [
        training.step(shards, recipe.STANDARD.learning_rate(step, global_batch, conformance.TRAINING_IMAGES))
        for step in range(conformance.STEPS)
    ]
    return [
        _recorded_parts(
            conformance.summary(
                start,
                {**probed.weights, **probed.statistics[rank]},
                {**training.weights, **training.statistics[rank]},
                [step[rank] for step in losses],
            )
            | {
                "sample_statistics": {
                    name: conformance.sketch(name, value) for name, value in training.unbiased[rank].items()
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
    images, labels = tensors.batch(rank, conformance.BATCH, conformance.IMAGE_SIZE)
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
