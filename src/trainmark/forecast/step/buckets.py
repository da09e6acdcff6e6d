"""Gradients as they come out of the backward pass: in buckets, last layers first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from trainmark.errors import UserError
from trainmark.workloads.declaration import Layer

# DistributedDataParallel's default.
BUCKET_BYTES = 25 * 2**20
# A backward pass does the work of the forward one twice, for the inputs and for the weights.
FORWARD_SHARE = 1 / 3


class Bucket(NamedTuple):
    """`ready` is the share of a step's computation after which the whole bucket can be sent."""

    ready: float
    bytes: float


def bucketed(
    layers: Iterable[Layer], bytes_per_gradient: int = 4, limit: float = BUCKET_BYTES
) -> tuple[Bucket, ...]:
    """Layers given from input to output, filled into buckets from the output backwards."""
    backwards = list(layers)[::-1]
    total = sum(layer.work for layer in backwards) or 1
    buckets: list[Bucket] = []
    done, filled = 0, 0
    for layer in backwards:
        done += layer.work
        filled += layer.parameters * bytes_per_gradient
        if filled >= limit:
            buckets.append(Bucket(_ready(done / total), filled))
            filled = 0
    return (*buckets, Bucket(1.0, filled)) if filled else tuple(buckets)


def measured(facts: Mapping[str, Any]) -> tuple[Bucket, ...]:
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
    return tuple(sorted(Bucket(min(1.0, max(0.0, share)), size) for share, size in shares))


def _ready(backward_done: float) -> float:
    return FORWARD_SHARE + (1 - FORWARD_SHARE) * backward_done
