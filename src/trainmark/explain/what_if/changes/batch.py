"""A larger batch: what does not grow with it is shared by more samples."""

from __future__ import annotations

from math import floor, log2

from trainmark.explain.what_if.change import (
    Overrides,
    StepPrediction,
    WhatIfChange,
    launch_gaps,
    milliseconds,
)
from trainmark.explain.what_if.situation import (
    COMMUNICATION,
    LAUNCH,
    LOADER,
    OPTIMIZER,
    Situation,
    StepPart,
)
from trainmark.view.message import _

# Seconds of a kernel (or an operator of a CPU) that are the same for any batch: start, ramp-up, and a last
# wave of blocks that fills the device in part. Steps of ResNet-50 at batch 128, 256 and 512 on an H200, eager
# and compiled (docs/results/h200-speed.md), give 5 to 8 µs.
START_SECONDS = {"cuda": 5.5e-6, "cpu": 1e-6}
# Of short kernels it is at most this share: ResNet-50 at batch 32 and 64 (docs/results/h200-explain).
MOST_START = 0.25
# A share of the memory that stays free for the allocator and the libraries.
USABLE_MEMORY = 0.92
WITH_WEIGHTS = ("convolution", "matrix product")
WEIGHT_PASSES = 3  # read forward, read backward, gradient written
ELEMENT_BYTES = {"amp": 2, "bf16": 2}


def twice(situation: Situation) -> StepPrediction | None:
    usable = _largest(situation)
    return None if usable is not None and usable < 2 else _times(situation, 2)


def largest(situation: Situation) -> StepPrediction | None:
    """The largest power of two times this batch that the memory holds, from 4 on."""
    factor = largest_factor(situation)
    return None if factor is None or factor < 4 else _times(situation, factor)


def largest_factor(situation: Situation) -> int | None:
    """Return how many times the batch the memory holds, a power of two; None where that is not known."""
    usable = _largest(situation)
    return None if usable is None else 2 ** floor(log2(max(usable, 1.0)))


def _largest(situation: Situation) -> float | None:
    memory, fixed, total = situation.memory, situation.fixed_memory, situation.device_memory
    if memory is None or fixed is None or total is None or memory <= fixed:
        return None
    return (USABLE_MEMORY * total - fixed) / (memory - fixed)


def _times(situation: Situation, factor: int) -> StepPrediction | None:
    """Seconds of a step of `factor` batches ÷ `factor`, to compare with the step as it is."""
    computing = [part for part in situation.parts if part.name != COMMUNICATION]
    if not computing:
        return None
    now = sum(part.alone for part in computing)
    fixed = sum(fixed_seconds(part, situation) for part in computing)
    then = fixed + (now - fixed) * factor
    compute = situation.compute * then / now if now else 0.0
    exposed = max(0.0, situation.exposed - situation.hidden * (factor - 1))
    idle = sum(seconds for cause, seconds in situation.idle.items() if cause not in (LAUNCH, LOADER))
    if situation.device == "cuda":
        gaps = max(0.0, situation.idle_for(LAUNCH) - (compute - situation.compute))
    else:
        gaps = launch_gaps(situation, compute + exposed, 1.0)
    step = compute + exposed + idle + gaps + situation.idle_for(LOADER) * factor
    constant = fixed + situation.exposed + situation.idle_for(LAUNCH) + idle
    why = _(
        "{constant} of a step (optimiser, starts of kernels, exposed communication, gaps) do not grow with"
        " the batch: {factor} times the samples share them; the time is that of as many as now.",
        constant=milliseconds(constant),
        factor=factor,
    )
    return StepPrediction(step / factor, why, gaps / factor)


def fixed_seconds(part: StepPart, situation: Situation) -> float:
    """Return the seconds of a class that are the same for any batch."""
    if part.name == OPTIMIZER:
        return part.alone
    start = min(part.launches * START_SECONDS[situation.device], MOST_START * part.alone)
    weights = part.alone * weight_share(part, situation) if part.name in WITH_WEIGHTS else 0.0
    return min(start + weights, part.alone)


def weight_share(part: StepPart, situation: Situation) -> float:
    """Return the share of products that goes into moving weights, were arithmetic and bytes not overlapped.

    They are: but where arithmetic bounds a class by far, the share is small in any case.
    """
    flops, bandwidth = situation.peaks.flops, situation.peaks.bandwidth
    if not (part.flop and part.bytes and flops and bandwidth and situation.parameters):
        return 0.0
    element = ELEMENT_BYTES.get(situation.settings.precision or "", 4)
    moved = min(WEIGHT_PASSES * element * situation.parameters, part.bytes)
    return moved / bandwidth / (part.flop / flops + part.bytes / bandwidth)


def batch_overrides(situation: Situation) -> Overrides | None:
    settings = situation.settings
    return {"batch_per_device": 2 * settings.batch} if settings.batch else None


def largest_overrides(situation: Situation) -> Overrides | None:
    batch, factor = situation.settings.batch, largest_factor(situation)
    return {"batch_per_device": factor * batch} if batch and factor else None


CHANGES = (
    WhatIfChange(
        "batch ×2",
        _("twice the batch"),
        twice,
        _("batch_size × 2, with the learning rate that goes with it"),
        overrides=batch_overrides,
    ),
    WhatIfChange(
        "largest batch",
        _("the largest batch that fits"),
        largest,
        _("the largest batch_size that fits, with the learning rate that goes with it"),
        overrides=largest_overrides,
    ),
)
