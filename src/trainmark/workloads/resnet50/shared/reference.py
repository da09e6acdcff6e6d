"""ResNet-50 v1.5 in float64: what five steps must give, and what every rank of a program showed beside it.

Five steps of SGD on one rank and on two, by a network on a tape: see `common/layers64.py`. The tolerances are
argued in docs/conformance.md. Each is a share of the figure itself, and where a figure can be nearly zero, a
floor from the rounding of what it was taken from.

python -m trainmark.workloads.resnet50.shared.reference     writes reference.json anew, in a minute
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from trainmark.workloads.common import layers64 as layer
from trainmark.workloads.common.conformance import (
    ROUNDING,
    Deviation,
    Numbers,
    beyond_tolerance,
    gradient_deviations,
    loss_deviations,
    loss_errors,
    movement_deviations,
    rank_sentences,
    recorded,
    ship,
    sketch_norm,
    start_deviations,
    structure_deviations,
)
from trainmark.workloads.common.layers64 import Array, Tape, TapeValue
from trainmark.workloads.declaration import Comparison
from trainmark.workloads.resnet50.shared import recipe, tensors

FILE = Path(__file__).with_name("reference.json")
RANKS = (1, 2)

Weights = dict[str, Array]


@dataclass(frozen=True)
class ReferencePass:
    """One forward and backward pass: `moments` are each batch norm's mean, variance and count of values."""

    loss: float
    gradients: Weights
    moments: dict[str, tuple[Array, Array, int]]


def forward_backward(weights: Mapping[str, Array], images: Array, labels: Array) -> ReferencePass:
    """Return the loss of a batch, its gradients by all weights, and what its batch norms saw."""
    net = ReferenceNetwork(weights)
    loss = net.loss(images, labels)
    net.tape.backward(loss)
    gradients = {name: value.gradient for name, value in net.weights.items()}
    return ReferencePass(float(loss.array), gradients, net.moments)


class ReferenceNetwork:
    """The forward pass over weights by canonical name."""

    def __init__(self, weights: Mapping[str, Array]) -> None:
        self.tape, self.weights = Tape(), {name: TapeValue(weight) for name, weight in weights.items()}
        self.moments: dict[str, tuple[Array, Array, int]] = {}

    def loss(self, images: Array, labels: Array) -> TapeValue:
        x = self.conv_norm("stem.conv", "stem.norm", TapeValue(images), 2)
        x = self.tape(layer.max_pool, self.tape(layer.relu, x))
        for index, (_, _, stride) in enumerate(recipe.bottlenecks()):
            x = self.block(f"blocks.{index}", x, stride)
        classifier = self.weights["classifier.weight"], self.weights["classifier.bias"]
        x = self.tape(layer.linear, self.tape(layer.global_average_pool, x), *classifier)
        smoothing = recipe.STANDARD.label_smoothing
        return self.tape(layer.cross_entropy, x, labels=labels, smoothing=smoothing)

    def block(self, name: str, x: TapeValue, stride: int) -> TapeValue:
        y = self.tape(layer.relu, self.conv_norm(f"{name}.conv1", f"{name}.norm1", x, 1))
        y = self.tape(layer.relu, self.conv_norm(f"{name}.conv2", f"{name}.norm2", y, stride))
        y = self.conv_norm(f"{name}.conv3", f"{name}.norm3", y, 1)
        if f"{name}.shortcut.conv.weight" in self.weights:
            x = self.conv_norm(f"{name}.shortcut.conv", f"{name}.shortcut.norm", x, stride)
        return self.tape(layer.relu, self.tape(layer.addition, y, x))

    def conv_norm(self, conv: str, norm: str, x: TapeValue, stride: int) -> TapeValue:
        y = self.tape(layer.convolution, x, self.weights[f"{conv}.weight"], stride=stride)
        axes = (0, 2, 3)
        self.moments[norm] = (y.array.mean(axes), y.array.var(axes), y.array.size // y.array.shape[1])
        learnt = self.weights[f"{norm}.scale"], self.weights[f"{norm}.bias"]
        return self.tape(layer.batch_norm, y, *learnt, epsilon=recipe.BATCH_NORM_EPSILON)


class ReferenceTraining:
    """Data-parallel training: the mean of the ranks' gradients, while batch norm stays each rank's own."""

    def __init__(self, weights: Mapping[str, Array], ranks: int) -> None:
        values = {name: value.astype(np.float64) for name, value in weights.items()}
        statistics = {name: value for name, value in values.items() if tensors.is_statistic(name)}
        self.weights = {name: value for name, value in values.items() if name not in statistics}
        self.statistics = [dict(statistics) for _ in range(ranks)]
        self.unbiased = [dict(statistics) for _ in range(ranks)]
        self.momenta = {name: np.zeros_like(value) for name, value in self.weights.items()}

    def step(self, shards: list[tuple[Array, Array]], rate: float) -> list[float]:
        """The ranks' own losses."""
        passes = [forward_backward(self.weights, *shard) for shard in shards]
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
    return {part: recorded(shown[part]) for part in parts}


def _shard(rank: int) -> tuple[Array, Array]:
    images, labels = tensors.conformance_batch(rank, tensors.BATCH, tensors.IMAGE_SIZE)
    return images.astype(np.float64), labels


@cache
def expected(ranks: int) -> list[dict[str, Any]]:
    """The reference as shipped, by rank."""
    shipped: dict[str, list[dict[str, Any]]] = json.loads(FILE.read_text(encoding="utf-8"))
    return shipped[str(ranks)]


LOSS_TOLERANCE = 5e-6
GLOBAL_GRADIENT_TOLERANCE = 2e-4
GRADIENT_TOLERANCE = 1e-2
GRADIENT_FLOOR = 1e-5  # of the global norm: what the rounding of the layers above leaves in a small tensor
MOVED_TOLERANCE = 1e-2
MOVED_FLOOR = 8 * ROUNDING  # of the weights: five sums of a weight and a small step, each rounded
# A variance as the mean of squares less the square of the mean loses a thousandth here.
STATISTICS_TOLERANCE = 5e-3


def rank_deviations(observed: Mapping[str, Any], expected: Mapping[str, Any]) -> list[Deviation]:
    """Of one rank, the gravest first; empty where it conforms."""
    wrong = list(structure_deviations(observed, tensors.shapes(), recipe.PARAMETERS))
    if wrong:
        return wrong
    seen, right = ((shown["gradient_norms"], shown["gradients"]) for shown in (observed, expected))
    return beyond_tolerance(
        [
            *start_deviations(observed, _given()),
            *loss_deviations(observed, expected, LOSS_TOLERANCE),
            *gradient_deviations(seen, right, GLOBAL_GRADIENT_TOLERANCE, GRADIENT_TOLERANCE, GRADIENT_FLOOR),
            *movement_deviations(observed, expected, _given(), MOVED_TOLERANCE, MOVED_FLOOR),
            *_statistics(observed, expected),
        ]
    )


def statistics_convention(observed: Mapping[str, Any], expected: Mapping[str, Any]) -> str:
    """Which variance batch norm remembers: of the batch as a `population`, or as a `sample` of n - 1."""
    errors = {
        name: max(
            difference.share for difference in _statistic_deviations(observed["statistics"], expected[part])
        )
        for name, part in CONVENTIONS.items()
    }
    return min(errors, key=lambda name: errors[name])


CONVENTIONS = {"population": "statistics", "sample": "sample_statistics"}


@cache
def _given() -> dict[str, list[float]]:
    return {name: tensors.sketch(name, value) for name, value in tensors.initial_weights().items()}


def _statistics(observed: Mapping[str, Any], expected: Mapping[str, Any]) -> Iterator[Deviation]:
    """A framework may remember either variance: what is trained does not depend on it."""
    part = CONVENTIONS[statistics_convention(observed, expected)]
    yield from _statistic_deviations(observed["statistics"], expected[part])


def _statistic_deviations(seen: Mapping[str, Numbers], right: Mapping[str, Numbers]) -> Iterator[Deviation]:
    for name, sketch in right.items():
        error = sketch_norm(np.subtract(seen[name], sketch))
        yield Deviation(f"the running {name}", error, STATISTICS_TOLERANCE * sketch_norm(sketch))


def compare(shown: Sequence[Mapping[str, Any]]) -> Comparison:
    """Compare what every rank wrote down with the reference."""
    references = expected(len(shown))
    differs = rank_sentences([rank_deviations(*pair) for pair in zip(shown, references, strict=True)])
    largest = max(loss_errors(shown, references))
    if differs:
        return Comparison(differs, largest)
    variance = statistics_convention(shown[0], references[0])
    remark = f"batch norm keeps the {variance} variance"
    return Comparison((), largest, remark, (("running_variance", variance),))


def write() -> None:
    """Compute the reference and ship it."""
    ship({str(ranks): observe(ranks) for ranks in RANKS}, FILE)


if __name__ == "__main__":
    write()
