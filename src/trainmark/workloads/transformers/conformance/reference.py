"""Five steps of a transformer's training in float64, on one rank and on two: what each program must show.

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

from trainmark.workloads.transformers.conformance import initial
from trainmark.workloads.transformers.conformance.layers64 import Array
from trainmark.workloads.transformers.conformance.observe import first_gradients, summary
from trainmark.workloads.transformers.conformance.optimizer64 import Optimizer, Tensors
from trainmark.workloads.transformers.conformance.tape64 import Tape, Value
from trainmark.workloads.transformers.shape import Shape

RANKS = (1, 2)
OPTIMIZERS = {"bert": ("lamb", "adamw")}
BATCHES = {"bert": initial.bert_batches}
DIGITS = 9  # a hundred times what float32 tells apart
RECORDED = ("gradient_norms", "gradients", "moments", "moved")

Batch = Sequence[Array]


@dataclass(frozen=True)
class Network:
    """A family's network in float64, in the size that is compared, and its batches by rank."""

    name: str
    shape: Shape
    shapes: dict[str, tuple[int, ...]]
    loss: Callable[[Tape, Mapping[str, Value], Batch, Shape], Value]
    batches: Callable[..., dict[str, tuple[Any, ...]]]
    optimizers: tuple[str, ...]

    def gradients(self, weights: Mapping[str, Array], batch: Batch) -> tuple[float, Tensors]:
        """Return the loss of a batch, and its gradients by all weights."""
        tape, values = Tape(), {name: Value(weight) for name, weight in weights.items()}
        loss = self.loss(tape, values, batch, self.shape)
        tape.backward(loss)
        return float(loss.array), {name: value.gradient for name, value in values.items()}


def network(family: str) -> Network:
    """Return the network of a family by its name."""
    package = f"trainmark.workloads.{family}"
    model = importlib.import_module(f"{package}.shared.model")
    shape = model.SIZES[initial.SIZE]
    return Network(
        name=family,
        shape=shape,
        shapes=model.shapes(shape),
        loss=importlib.import_module(f"{package}.conformance.network64").loss,
        batches=BATCHES.get(family, initial.decoder_batches),
        optimizers=OPTIMIZERS.get(family, ("adamw",)),
    )


class Training:
    """Data-parallel training: the mean of the ranks' gradients, clipped once, updates all of them."""

    def __init__(self, net: Network, weights: Mapping[str, Array], optimizer: str) -> None:
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


def observe(net: Network, optimizer: str, ranks: int, dtype: Any = np.float64) -> list[dict[str, Any]]:
    """Return what each rank must show: the same that a framework's training is asked for."""
    start = {name: weight.astype(dtype) for name, weight in initial.weights(net.shapes).items()}
    by_rank = [net.batches(net.shapes, rank) for rank in range(ranks)]
    batches = {kind: [own[kind] for own in by_rank] for kind in initial.KINDS}
    gradients = {}
    for kind in initial.KINDS:
        probed = Training(net, start, optimizer)
        probed.step(batches[kind], initial.RATES[0])
        gradients[kind] = first_gradients(probed.momenta(), probed.optimizer.constants.beta1)
    training = Training(net, start, optimizer)
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
