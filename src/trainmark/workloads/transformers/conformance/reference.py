"""Five steps of a transformer's training in float64, and what every rank of a program showed beside them.

AdamW and LAMB with clipping by the global norm are the definition that frameworks must follow.
python -m trainmark.workloads.transformers.conformance.reference FAMILY     writes FAMILY.json anew

The tolerances are argued in docs/conformance.md. A transformer has no kinks: what two float32 programs
disagree in stays near the rounding.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from trainmark.workloads.common import conformance as common
from trainmark.workloads.common.chance import sketch
from trainmark.workloads.common.conformance import (
    ROUNDING,
    Deviation,
    Numbers,
    beyond_tolerance,
    loss_errors,
    rank_sentences,
)
from trainmark.workloads.common.layers64 import Array, Tape, TapeValue
from trainmark.workloads.declaration import Comparison
from trainmark.workloads.transformers.conformance import networks
from trainmark.workloads.transformers.conformance import observe as initial
from trainmark.workloads.transformers.conformance.networks import Parts
from trainmark.workloads.transformers.conformance.observe import Constants, first_gradients, summary
from trainmark.workloads.transformers.flops import TransformerShape

CLIP_EPSILON = 1e-6  # as torch.nn.utils.clip_grad_norm_ adds to the norm

Tensors = dict[str, Array]


class Optimizer:
    """Moments of every tensor, and the update of the weights by them."""

    def __init__(self, kind: str, weights: Mapping[str, Array], constants: Constants) -> None:
        self.kind, self.constants = kind, constants
        self.first = {name: np.zeros_like(weight) for name, weight in weights.items()}
        self.second = {name: np.zeros_like(weight) for name, weight in weights.items()}
        self.steps = 0

    def update(self, weights: Mapping[str, Array], gradients: Mapping[str, Array], rate: float) -> Tensors:
        """Return the weights after one step."""
        constants = self.constants
        self.steps += 1
        updated = {}
        for name, gradient in clipped(gradients, constants.clip).items():
            weight = weights[name]
            self.first[name] = constants.beta1 * self.first[name] + (1 - constants.beta1) * gradient
            self.second[name] = constants.beta2 * self.second[name] + (1 - constants.beta2) * gradient**2
            step = direction(self.first[name], self.second[name], self.steps, constants)
            if is_decayed(name, weight):
                step = step + constants.weight_decay * weight
                if self.kind == "lamb":
                    step = step * trust(weight, step)
            updated[name] = weight - rate * step
        return updated


def clipped(gradients: Mapping[str, Array], limit: float) -> Tensors:
    """Scale all gradients alike, so that their common norm is at most the limit."""
    factor = min(1.0, limit / (global_norm(gradients) + CLIP_EPSILON))
    return {name: factor * gradient for name, gradient in gradients.items()}


def global_norm(gradients: Mapping[str, Array]) -> float:
    return float(np.sqrt(sum(np.square(gradient).sum() for gradient in gradients.values())))


def direction(first: Array, second: Array, steps: int, constants: Constants) -> Array:
    """Return Adam's step at rate 1, the bias of moments that began at zero corrected (Kingma and Ba 2015)."""
    mean, square = first / (1 - constants.beta1**steps), second / (1 - constants.beta2**steps)
    return mean / (np.sqrt(square) + constants.epsilon)


def is_decayed(name: str, weight: Array) -> bool:
    """Weight decay, and LAMB's trust ratio, are for matrices: not for norms and biases."""
    return weight.ndim >= 2


def trust(weight: Array, step: Array) -> float:
    """Return LAMB's trust ratio (You et al. 2020)."""
    norms = float(np.linalg.norm(weight)), float(np.linalg.norm(step))
    return norms[0] / norms[1] if min(norms) > 0 else 1.0


RANKS = (1, 2)
OPTIMIZERS = {"bert": ("lamb", "adamw")}
RECORDED = ("gradient_norms", "gradients", "moments", "moved")

Batch = Sequence[Array]


@dataclass(frozen=True)
class ReferenceNetwork:
    """A family's network in float64, in the size that is compared, and its batches by rank."""

    name: str
    model: ModuleType
    shape: TransformerShape
    shapes: dict[str, tuple[int, ...]]
    loss: Callable[[Parts, Batch], TapeValue]
    batches: Callable[..., dict[str, tuple[Any, ...]]]
    optimizers: tuple[str, ...]

    def gradients(self, weights: Mapping[str, Array], batch: Batch) -> tuple[float, Tensors]:
        """Return the loss of a batch, and its gradients by all weights."""
        tape, values = Tape(), {name: TapeValue(weight) for name, weight in weights.items()}
        loss = self.loss(Parts(tape, values, self.model, self.shape), batch)
        tape.backward(loss)
        return float(loss.array), {name: value.gradient for name, value in values.items()}


def network(family: str) -> ReferenceNetwork:
    """Return the network of a family by its name."""
    model = importlib.import_module(f"trainmark.workloads.{family}.shared")
    shape = model.SIZES[initial.SIZE]
    return ReferenceNetwork(
        name=family,
        model=model,
        shape=shape,
        shapes=model.shapes(shape),
        loss=getattr(networks, f"{family}_loss"),
        batches=initial.batches_of(shape),
        optimizers=OPTIMIZERS.get(family, ("adamw",)),
    )


class ReferenceTraining:
    """Data-parallel training: the mean of the ranks' gradients, clipped once, updates all of them."""

    def __init__(self, net: ReferenceNetwork, weights: Mapping[str, Array], optimizer: str) -> None:
        self.network, self.weights = net, dict(weights)
        self.optimizer = Optimizer(optimizer, weights, initial.CONSTANTS[net.name])

    def step(self, batches: Sequence[Batch], rate: float) -> list[float]:
        """Return the ranks' own losses."""
        passes = [self.network.gradients(self.weights, batch) for batch in batches]
        gradients = averaged([gradients for _, gradients in passes])
        self.weights = self.optimizer.update(self.weights, gradients, rate)
        return [loss for loss, _ in passes]

    def momenta(self) -> Tensors:
        first = {f"first/{name}": moment for name, moment in self.optimizer.first.items()}
        return {**first, **{f"second/{name}": moment for name, moment in self.optimizer.second.items()}}


def averaged(ranks: Sequence[Mapping[str, Array]]) -> Tensors:
    """Return the mean of the ranks' gradients."""
    return {name: sum(gradients[name] for gradients in ranks) / len(ranks) for name in ranks[0]}


def observe(
    net: ReferenceNetwork, optimizer: str, ranks: int, dtype: Any = np.float64
) -> list[dict[str, Any]]:
    """Return what each rank must show: the same that a framework's training is asked for."""
    start = {name: weight.astype(dtype) for name, weight in initial.initial_weights(net.shapes).items()}
    by_rank = [net.batches(net.shapes, rank) for rank in range(ranks)]
    batches = {kind: [own[kind] for own in by_rank] for kind in initial.KINDS}
    gradients = {}
    for kind in initial.KINDS:
        probed = ReferenceTraining(net, start, optimizer)
        probed.step(batches[kind], initial.LEARNING_RATES[0])
        gradients[kind] = first_gradients(probed.momenta(), probed.optimizer.constants.beta1)
    training = ReferenceTraining(net, start, optimizer)
    losses = [training.step(batches[kind], rate) for kind, rate in initial.schedule()]
    parameters = sum(weight.size for weight in start.values())
    return [
        dict(
            summary(start, gradients, training.weights, training.momenta(), [step[rank] for step in losses]),
            parameters=parameters,
        )
        for rank in range(ranks)
    ]


def recorded(shown: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what does not follow from the initial weights; all but the losses is the same on every rank."""
    return common.recorded(
        {"losses": [rank["losses"] for rank in shown], **{part: shown[0][part] for part in RECORDED}}
    )


@cache
def expected(family: str, optimizer: str, ranks: int) -> list[dict[str, Any]]:
    """Return the reference as shipped, by rank."""
    shipped = json.loads(_file(family).read_text(encoding="utf-8"))[optimizer][str(ranks)]
    return [{**shipped, "losses": losses} for losses in shipped["losses"]]


def _file(family: str) -> Path:
    return Path(__file__).with_name(f"{family}.json")


def write(family: str) -> None:
    """Compute a family's reference and ship it."""
    net = network(family)
    computed = {
        optimizer: {str(ranks): recorded(observe(net, optimizer, ranks)) for ranks in RANKS}
        for optimizer in net.optimizers
    }
    common.ship(computed, _file(family))


LOSS_TOLERANCE = 1e-5
# What is clipped is scaled by a sum of 400,000 squares, which loses a digit in float32.
GLOBAL_GRADIENT_TOLERANCE = {initial.STEEP: 5e-5, initial.GENTLE: 1e-5}
GRADIENT_TOLERANCE = {initial.STEEP: 2e-4, initial.GENTLE: 5e-5}
GRADIENT_FLOOR = (
    2e-6  # of the global norm: what rounding leaves where a gradient is zero, as of the keys' bias
)
MOMENT_TOLERANCE = 5e-4
MOMENT_FLOOR = 2e-6  # of all first, or all second moments
MOVED_TOLERANCE = 5e-4
MOVED_FLOOR = 8 * ROUNDING  # of the weights: five sums of a weight and a small step, each rounded


def rank_deviations(family: str, observed: Mapping[str, Any], expected: Mapping[str, Any]) -> list[Deviation]:
    """Return every figure of one rank with its error; those of another structure alone where it has one."""
    net = network(family)
    parameters = sum(int(np.prod(shape)) for shape in net.shapes.values())
    wrong = list(common.structure_deviations(observed, net.shapes, parameters))
    if wrong:
        return wrong
    given = _given(family)
    figures = [
        *common.start_deviations(observed, given),
        *common.loss_deviations(observed, expected, LOSS_TOLERANCE),
    ]
    for kind in initial.KINDS:
        seen, right = (
            (shown["gradient_norms"][kind], shown["gradients"][kind]) for shown in (observed, expected)
        )
        allowed = GLOBAL_GRADIENT_TOLERANCE[kind], GRADIENT_TOLERANCE[kind], GRADIENT_FLOOR
        figures += common.gradient_deviations(seen, right, *allowed, batch=f" ({kind} batch)")
    figures += _moments(observed["moments"], expected["moments"])
    figures += common.movement_deviations(observed, expected, given, MOVED_TOLERANCE, MOVED_FLOOR)
    return figures


@cache
def _given(family: str) -> dict[str, list[float]]:
    weights = initial.initial_weights(network(family).shapes)
    return {name: sketch(name, weight) for name, weight in weights.items()}


def _moments(seen: Mapping[str, Numbers], right: Mapping[str, Numbers]) -> Iterator[Deviation]:
    for order in ("first", "second"):
        norms = {
            name: common.sketch_norm(value) for name, value in right.items() if name.startswith(f"{order}/")
        }
        floor = MOMENT_FLOOR * common.total_norm(norms)
        for name, size in norms.items():
            error = common.sketch_norm(np.subtract(seen[name], right[name]))
            what = f"the {order} moment of {name.partition('/')[2]} after the last step"
            yield Deviation(what, error, MOMENT_TOLERANCE * size + floor)


def compare(family: str, optimizer: str, shown: Sequence[Mapping[str, Any]]) -> Comparison:
    """Compare what every rank wrote down with the reference."""
    references = expected(family, optimizer, len(shown))
    figures = [rank_deviations(family, *pair) for pair in zip(shown, references, strict=True)]
    differs = rank_sentences([beyond_tolerance(rank) for rank in figures])
    share = max(figure.share for rank in figures for figure in rank)
    largest = max(loss_errors(shown, references))
    if differs:
        return Comparison(differs, largest)
    return Comparison((), largest, f"every figure within {share:.1%} of its tolerance")


if __name__ == "__main__":
    write(sys.argv[1])
