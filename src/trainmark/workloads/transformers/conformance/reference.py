"""Five steps of a transformer's training in float64, on one rank and on two: what each program must show.

AdamW and LAMB with clipping by the global norm are the definition that frameworks must follow.
python -m trainmark.workloads.FAMILY.conformance.reference     writes that family's reference.json anew
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from trainmark.workloads.transformers.conformance import observe as initial
from trainmark.workloads.transformers.conformance.layers64 import Array, Tape, TapeValue
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
BATCHES = {"bert": initial.bert_batches}
DIGITS = 9  # a hundred times what float32 tells apart
RECORDED = ("gradient_norms", "gradients", "moments", "moved")

Batch = Sequence[Array]


@dataclass(frozen=True)
class ReferenceNetwork:
    """A family's network in float64, in the size that is compared, and its batches by rank."""

    name: str
    shape: TransformerShape
    shapes: dict[str, tuple[int, ...]]
    loss: Callable[[Tape, Mapping[str, TapeValue], Batch, TransformerShape], TapeValue]
    batches: Callable[..., dict[str, tuple[Any, ...]]]
    optimizers: tuple[str, ...]

    def gradients(self, weights: Mapping[str, Array], batch: Batch) -> tuple[float, Tensors]:
        """Return the loss of a batch, and its gradients by all weights."""
        tape, values = Tape(), {name: TapeValue(weight) for name, weight in weights.items()}
        loss = self.loss(tape, values, batch, self.shape)
        tape.backward(loss)
        return float(loss.array), {name: value.gradient for name, value in values.items()}


def network(family: str) -> ReferenceNetwork:
    """Return the network of a family by its name."""
    package = f"trainmark.workloads.{family}"
    model = importlib.import_module(f"{package}.shared.model")
    shape = model.SIZES[initial.SIZE]
    return ReferenceNetwork(
        name=family,
        shape=shape,
        shapes=model.shapes(shape),
        loss=importlib.import_module(f"{package}.conformance.reference").loss,
        batches=BATCHES.get(family, initial.decoder_batches),
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
    return _rounded(
        {"losses": [rank["losses"] for rank in shown], **{part: shown[0][part] for part in RECORDED}}
    )


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return float(f"{value:.{DIGITS}g}")


@cache
def expected(family: str, optimizer: str, ranks: int) -> list[dict[str, Any]]:
    """Return the reference as shipped, by rank."""
    shipped = json.loads(_file(family).read_text(encoding="utf-8"))[optimizer][str(ranks)]
    return [{**shipped, "losses": losses} for losses in shipped["losses"]]


def _file(family: str) -> Path:
    return Path(__file__).parents[2] / family / "conformance" / "reference.json"


def write(family: str) -> None:
    """Compute a family's reference and ship it."""
    net = network(family)
    computed = {
        optimizer: {str(ranks): recorded(observe(net, optimizer, ranks)) for ranks in RANKS}
        for optimizer in net.optimizers
    }
    lines = json.dumps(computed, separators=(",", ":")).replace("],", "],\n")
    _file(family).write_text(lines + "\n", encoding="utf-8")
