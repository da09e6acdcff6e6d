"""One training step at a size: layers, gradient buckets, all-reduce, the slowest rank.

Layers are counted from the architecture. Gradients come out of the backward pass in buckets, last layers
first; buckets become ready, wait for their turn, are reduced.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from trainmark.base.errors import UserError
from trainmark.workloads import registry
from trainmark.workloads.declaration import Axes, Layer


def bert_base(sequence: int = 128) -> Iterator[Layer]:
    """BERT-base with its two heads of pre-training; the tied embedding comes last of all gradients."""
    hidden, inner, words = 768, 3072, 30522
    norm = 2 * hidden
    yield Layer((words + 512 + 2) * hidden + norm, 0)
    for _ in range(12):
        attention = 4 * hidden * hidden * sequence + 2 * hidden * sequence * sequence
        yield Layer(4 * (hidden * hidden + hidden) + norm, attention)
        yield Layer(2 * hidden * inner + inner + hidden + norm, 2 * hidden * inner * sequence)
    yield Layer(hidden * hidden + hidden, hidden * hidden)
    predicted = sequence * 20 // 128  # masked words of a sequence, as the original pre-training has them
    yield Layer(hidden * hidden + hidden + norm + words, (hidden + words) * hidden * predicted)
    yield Layer(2 * hidden + 2, 2 * hidden)


def even_layers(parameters: int, layers: int = 50) -> Iterator[Layer]:
    """A model of which only the size is known."""
    for place in range(layers):
        yield Layer(parameters * (place + 1) // layers - parameters * place // layers, 1)


# Published in the ledger, and not a workload here.
PUBLISHED_MODELS: dict[str, Callable[[], Iterable[Layer]]] = {"bert-base": bert_base}


def models() -> list[str]:
    """Return the names of all models whose layers are known."""
    declared = [name for name, family in registry.families().items() if family.workload.layers]
    return [*declared, *PUBLISHED_MODELS]


def layers_of(model: str, axes: Axes | None = None) -> Iterable[Layer] | None:
    """Return the layers of a workload, by name or by folder, or of a published model.

    An axis that is not given is at its default.
    """
    if model in PUBLISHED_MODELS:
        return PUBLISHED_MODELS[model]()
    family = registry.find(model) if registry.is_path(model) else registry.families().get(model)
    if family is None or family.workload.layers is None:
        return None
    defaults = family.workload.defaults
    return family.workload.layers({name: (axes or {}).get(name, defaults[name]) for name in defaults})


# DistributedDataParallel's default.
BUCKET_BYTES = 25 * 2**20
# A backward pass does the work of the forward one twice, for the inputs and for the weights.
FORWARD_SHARE = 1 / 3


class GradientBucket(NamedTuple):
    """`ready` is the share of a step's computation after which the whole bucket can be sent."""

    ready: float
    bytes: float


def fill_buckets(
    layers: Iterable[Layer], bytes_per_gradient: int = 4, limit: float = BUCKET_BYTES
) -> tuple[GradientBucket, ...]:
    """Layers given from input to output, filled into buckets from the output backwards."""
    backwards = list(layers)[::-1]
    total = sum(layer.work for layer in backwards) or 1
    buckets: list[GradientBucket] = []
    done, filled = 0, 0
    for layer in backwards:
        done += layer.work
        filled += layer.parameters * bytes_per_gradient
        if filled >= limit:
            buckets.append(GradientBucket(_ready(done / total), filled))
            filled = 0
    return (*buckets, GradientBucket(1.0, filled)) if filled else tuple(buckets)


def measured_buckets(facts: Mapping[str, Any]) -> tuple[GradientBucket, ...]:
    """Buckets as a workload reports them at its end.

    `ready_seconds` counts from the start of the backward pass; without `forward_seconds` and
    `backward_seconds` the last bucket is taken to end that pass. No buckets where none are reported.
    """
    buckets = facts.get("gradient_buckets") or ()
    try:
        ready = [(float(one["ready_seconds"]), float(one["bytes"])) for one in buckets]
        backward = float(facts.get("backward_seconds") or max((each for each, _ in ready), default=1.0))
        forward = float(facts.get("forward_seconds") or backward * FORWARD_SHARE / (1 - FORWARD_SHARE))
        shares = [((forward + each) / (forward + backward), size) for each, size in ready]
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        raise UserError(f"the run's gradient_buckets cannot be read ({error}); measure it again.") from error
    return tuple(sorted(GradientBucket(min(1.0, max(0.0, share)), size) for share, size in shares))


def _ready(backward_done: float) -> float:
    return FORWARD_SHARE + (1 - FORWARD_SHARE) * backward_done


@dataclass(frozen=True)
class SimulatedStep:
    """Seconds of a step: computation on the slowest rank, communication beside it, and after it."""

    compute: float
    hidden: float
    exposed: float


def simulate_step(
    buckets: Sequence[GradientBucket], compute: float, reduce_seconds: Callable[[float], float]
) -> SimulatedStep:
    """The reduction of a bucket starts when its last gradient is there and the bucket before it is through.

    `compute` is what the slowest rank computes, `reduce_seconds` what reducing so many bytes takes.
    """
    free, hidden = 0.0, 0.0
    for ready, count in buckets:
        start = max(free, ready * compute)
        free = start + reduce_seconds(count)
        hidden += max(0.0, min(free, compute) - start)
    return SimulatedStep(compute, hidden, max(0.0, free - compute))


SAMPLED_STEPS = 200


@cache
def expected_largest(count: int) -> float:
    """The mean of the largest of `count` standard normal values: 0, 0.56, …, 1.03 for four, 3.04 for 512.

    ∫ 1 − Φ(x)ⁿ over the positive half-line minus ∫ Φ(x)ⁿ over the negative one, by midpoints.
    """
    x = (np.arange(20_000) + 0.5) / 1000 - 10
    below = np.array([0.5 * math.erfc(-value / math.sqrt(2)) for value in x]) ** count
    return float(np.sum(np.where(x >= 0, 1 - below, -below)) * (x[1] - x[0]))


@cache
def slowest_rank(ranks: int, variation: float, seed: int = 0) -> float:
    """A step's computation on the slowest rank over that of a usual one, when ranks vary lognormally.

    `variation` is the coefficient of variation of one rank's computation; the mean of sampled steps.
    """
    if ranks == 1 or variation == 0:
        return 1.0
    sigma = math.sqrt(math.log1p(variation**2))
    noise = np.random.default_rng(seed).normal(-sigma * sigma / 2, sigma, (SAMPLED_STEPS, ranks))
    return float(np.exp(noise.max(axis=1)).mean())
