"""A fused optimiser: one kernel reads and writes every parameter and its state once."""

from __future__ import annotations

from trainmark.explain.what_if.change import Overrides, StepPrediction, WhatIfChange, milliseconds, rebuilt
from trainmark.explain.what_if.situation import OPTIMIZER, Situation
from trainmark.view.message import _

# Bytes a parameter: float32 weight, gradient and state read, weight and state written.
PARAMETER_BYTES = {"adam": 28, "adamw": 28, "sgd": 20, "lamb": 40}
DEFAULT_PARAMETER_BYTES = 28
REACHED_BANDWIDTH = 0.85  # of a copy's, by a kernel over a list of tensors
FUSED_LAUNCHES = 8  # a list of tensors is cut into a few
FUSED_IN_PYTORCH = {name.lower(): name for name in ("Adam", "AdamW", "SGD", "Adagrad")}
LEAST_GAIN = 1.15  # a fused optimiser is not faster than itself


def fused_optimizer(situation: Situation) -> StepPrediction | None:
    part = situation.part(OPTIMIZER)
    if part is None or part.launches <= FUSED_LAUNCHES:
        return None
    fused = fused_seconds(situation)
    if fused is None or part.alone < LEAST_GAIN * fused:
        return None
    issued = 1 - (part.launches - FUSED_LAUNCHES) / situation.launches
    why = _(
        "{launches} launches of the optimiser become {fused} that pass over weights, gradients and state"
        " once: {time} become {then}.",
        launches=f"{part.launches:.0f}",
        fused=FUSED_LAUNCHES,
        time=milliseconds(part.alone),
        then=milliseconds(fused),
    )
    return rebuilt(situation, {OPTIMIZER: fused}, issued).because(why)


def fused_seconds(situation: Situation, more_bytes: int = 0) -> float | None:
    """Return the time of one pass over parameters and state; None where their number is not known.

    `more_bytes` are what else is read and written for each parameter.
    """
    if not situation.parameters or not situation.peaks.bandwidth:
        return None
    name = (situation.settings.optimizer or "").lower()
    size = PARAMETER_BYTES.get(name, DEFAULT_PARAMETER_BYTES) + more_bytes
    return size * situation.parameters / (REACHED_BANDWIDTH * situation.peaks.bandwidth)


def fused_line(situation: Situation) -> str:
    """The optimizer that was seen, where PyTorch has it in one kernel."""
    name = FUSED_IN_PYTORCH.get((situation.settings.optimizer or "").lower())
    return f"torch.optim.{name}(..., fused=True)" if name else ""


def optimizer_suggestion(situation: Situation) -> Overrides | None:
    """The stock engine of transformers has other attention too."""
    return {"engine": "stock"} if situation.settings.engine == "plain" else None


CHANGES = (
    WhatIfChange(
        "fused optimiser",
        _("a fused optimiser"),
        fused_optimizer,
        _("an optimiser that updates all parameters in one kernel"),
        {
            "pytorch": fused_line,
            "jax": "@jax.jit  # of the update together with the gradients",
            "paddle": "paddle.optimizer.AdamW(..., use_multi_tensor=True)",
        },
        suggestion=optimizer_suggestion,
    ),
)
