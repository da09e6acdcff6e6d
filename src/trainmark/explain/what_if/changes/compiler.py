"""A compiler: chains of elementwise operations and normalisations become one kernel each."""

from __future__ import annotations

from trainmark.explain.kernel_classes import PRODUCT_CLASSES
from trainmark.explain.what_if.change import (
    Overrides,
    StepPrediction,
    WhatIfChange,
    issue_seconds,
    milliseconds,
    rebuilt,
    tuned_seconds,
)
from trainmark.explain.what_if.changes.layout import without_layout_copies
from trainmark.explain.what_if.changes.optimizer import fused_seconds
from trainmark.explain.what_if.situation import NO_FRAMEWORK, OPTIMIZER, Situation
from trainmark.view.message import _, joined

FUSIBLE = ("normalisation", "elementwise", "reduction")
# Tensors that an operation reads and writes on average, and how many of them fusing it with the one before
# saves: the read of what lies between, and its write in half of the cases, as backward needs the other half.
# Around a batch norm only the read: its statistics are complete before anything else can begin.
PASSES, SAVED_PASSES, SAVED_AROUND_BATCH_NORM = 2.5, 1.5, 1.0
# Of three products of a linear layer (forward, dgrad, wgrad) two stand in a chain, with a place before each;
# a convolution has three, as the statistics of its batch norm are a pass of their own.
PLACES = {"convolution": 1.0, "matrix product": 2 / 3, "attention": 2 / 3}
# Generated code launches fewer kernels, but checks guards and allocates for them: the host gains nothing. On
# the host of an H200 GPT-2 124M at batch 2 takes 13.8 ms eager and 13.7 ms compiled, ResNet-50 at batch 32
# 17.9 ms at most and 22.4 ms.
# Bytes a parameter beside the update's own: gradients gathered into one tensor, and read for their norm.
CLIPPING_BYTES = 12
TURNS_CHANNELS_LAST = "pytorch"
# Compiled in any case, the whole step; and where no compiler is known.
NOT_TO_COMPILE = ("jax", "mindspore", "mxnet", NO_FRAMEWORK)


def compiled(situation: Situation) -> StepPrediction | None:
    """Between two products at most one fused kernel is left, and its bytes shrink with the chain's length."""
    settings = situation.settings
    if situation.device == "cpu":  # measured slower there as often as faster
        return None
    if settings.compiler or settings.framework in NOT_TO_COMPILE or settings.engine == "fused":
        return None
    fusible = [part for part in situation.parts if part.name in FUSIBLE and part.launches]
    products = [part for part in situation.parts if part.name in PRODUCT_CLASSES]
    places = sum(part.launches * PLACES[part.name] for part in products)
    if not fusible or not places:
        return None
    before = sum(part.launches for part in fusible)
    after = min(before, places)
    saved = SAVED_AROUND_BATCH_NORM if situation.has_batch_norm else SAVED_PASSES
    ratio = fused_bytes(before / after, saved)
    alone = {part.name: tuned_seconds(part) * ratio for part in fusible}
    turned = without_layout_copies(situation) if settings.framework == TURNS_CHANNELS_LAST else {}
    alone |= {name: seconds for name, seconds in turned.items() if name not in alone}
    now = sum(part.alone for part in fusible)
    then = sum(alone[part.name] for part in fusible)
    why = [
        _(
            "{before} elementwise, normalising and reducing launches become {after}, at most one in each"
            " place between products, with {ratio} of their bytes: {time} become {fused}.",
            before=f"{before:.0f}",
            after=f"{after:.0f}",
            ratio=f"{ratio:.2f}",
            time=milliseconds(now),
            fused=milliseconds(then),
        )
    ]
    if (update := compiled_update_seconds(situation)) is not None:
        alone[OPTIMIZER] = update
        why.append(_("The update, compiled as well: {time}.", time=milliseconds(update)))
    step = rebuilt(situation, alone)
    if step.because(why[0]).waits_for_host:
        why.append(
            _(
                "The host still takes {time} to issue a step, and the device waits for it: capture a graph as"
                " well.",
                time=milliseconds(issue_seconds(situation)),
            )
        )
    if turned:
        why.append(_("Inductor turns convolutions to channels last, without kernels that change layouts."))
    return step.because(joined(why, " "))


def compiled_update_seconds(situation: Situation) -> float | None:
    """Return the time of an update that is compiled with the model; None where it stays what it is."""
    part = situation.part(OPTIMIZER)
    fused = fused_seconds(situation, CLIPPING_BYTES)
    if part is None or fused is None or not situation.settings.compiles_update:
        return None
    return min(part.alone, fused)


def fused_bytes(length: float, saved: float = SAVED_PASSES) -> float:
    """Return the share of its bytes that a chain of so many operations moves as one kernel."""
    return (PASSES * length - saved * (length - 1)) / (PASSES * length)


def compile_overrides(situation: Situation) -> Overrides | None:
    settings = situation.settings
    return {"compile": True} if settings.framework not in NOT_TO_COMPILE else None


CHANGES = (
    WhatIfChange(
        "compile",
        _("compile the model"),
        compiled,
        _("use the framework's compiler"),
        {
            "pytorch": "model = torch.compile(model)",
            "tensorflow": "@tf.function(jit_compile=True)",
            "paddle": 'paddle.jit.to_static(model, backend="CINN")',
        },
        compile_overrides,
    ),
)
