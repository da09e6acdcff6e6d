"""bfloat16: products at another peak, and half of the bytes elsewhere."""

from __future__ import annotations

from trainmark.explain.kernel_classes import PRODUCT_CLASSES
from trainmark.explain.what_if.change import Overrides, StepPrediction, WhatIfChange, milliseconds, rebuilt
from trainmark.explain.what_if.situation import MEMORY_CLASSES, Situation, StepPart
from trainmark.view.message import _, joined

# A product reaches less of a higher peak: its share of it falls with this power of the ratio of the peaks.
# An estimate: 0.96 at twice the peak, 0.85 at fifteen times; the record tells how far it is off.
TEMPER = 0.06
HALF_BYTES = 0.5
# PyTorch's eager batch norm in bfloat16 is its own, not cuDNN's. Of the float32 time on an H200 this much is
# left, by layout: ResNet-50 takes 54.1 ms with it and 42.0 ms in float16 at batch 256, channels last
# (docs/results/h200); at batch 64, channels first, cuDNN's 10.8 ms become 14.5 (docs/results/h200-explain).
EAGER_BATCH_NORM = {"NHWC": 0.85, "NCHW": 1.34}
# Attention in float32 does not use what the peak is made of; a flash kernel in bfloat16 reaches this share of
# a product's peak (GPT-2 124M on an H200: 1.86 TFLOP in 8.9 ms).
FLASH_SHARE = 0.27


def bf16(situation: Situation) -> StepPrediction | None:
    precision = situation.settings.precision
    if precision not in ("fp32", "tf32"):
        return None
    now, then = situation.product_peak(precision), situation.product_peak("bf16")
    if not now or not then:
        return None
    bandwidth = situation.peaks.bandwidth
    alone = {
        part.name: product_seconds(part, now, then, bandwidth, bandwidth, HALF_BYTES)
        for part in situation.parts
        if part.name in PRODUCT_CLASSES
    }
    attention, uses_flash = situation.part("attention"), False
    if attention is not None and attention.flop and situation.device == "cuda":
        flash = attention.flop / (FLASH_SHARE * then)
        uses_flash = flash < alone[attention.name]
        alone[attention.name] = min(alone[attention.name], flash)
    # Activations have half of the bytes; losses and statistics, which stay in float32, are few.
    alone |= {part.name: halved_seconds(part) for part in situation.parts if part.name in MEMORY_CLASSES}
    settings, norm = situation.settings, situation.part("normalisation")
    if (
        norm is not None
        and settings.framework == "pytorch"
        and not settings.compiler
        and situation.has_batch_norm
    ):
        converts = any(part.layout_copies for part in situation.parts)
        layout = settings.layout or ("NCHW" if converts else "NHWC")
        alone[norm.name] = norm.alone * EAGER_BATCH_NORM[layout]
    if situation.device == "cpu":
        # Vector units convert every bfloat16 to float32 and back: what is saved in bytes is spent there.
        alone |= {part.name: part.alone for part in situation.parts if part.name in MEMORY_CLASSES}
    on_cpu = situation.device == "cpu"
    why = [
        _(
            "Products at {times} times the peak, as far from it as now and a little further; elementwise"
            " operations and normalisation: {halved}; the optimiser stays in float32.",
            times=f"{then / now:.1f}",
            halved=_("unchanged (converted on the fly)") if on_cpu else _("half of the bytes"),
        )
    ]
    if uses_flash and attention is not None:
        why.append(_("Attention by a flash kernel: {time}.", time=milliseconds(alone[attention.name])))
    return rebuilt(situation, alone).because(joined(why, " "))


def halved_seconds(part: StepPart) -> float:
    """Return the seconds of a class with half of its bytes; transposing takes as long, element by element."""
    return part.alone * (part.layout_share + HALF_BYTES * (1 - part.layout_share))


def product_seconds(
    part: StepPart,
    flops_now: float,
    flops_then: float,
    bandwidth_now: float | None,
    bandwidth_then: float | None,
    byte_share: float = 1.0,
) -> float:
    """Return the seconds of a class with products at other peaks, as far from the roofline as it is now."""
    tempered = (flops_then / flops_now) ** TEMPER if flops_then > flops_now else 1.0
    if not part.flop or not part.alone or not part.busy:
        return part.alone * flops_now / flops_then * tempered
    moved_now, moved_then = 0.0, 0.0
    if part.bytes and bandwidth_now and bandwidth_then:
        moved_now, moved_then = part.bytes / bandwidth_now, byte_share * part.bytes / bandwidth_then
    roof_now = max(part.flop / flops_now, moved_now)
    roof_then = max(part.flop / flops_then, moved_then)
    return part.alone * roof_then / roof_now * tempered


def precision_overrides(situation: Situation) -> Overrides | None:
    settings = situation.settings
    return {"precision": "bf16"} if settings.precision in ("fp32", "tf32") else None


CHANGES = (
    WhatIfChange(
        "bf16",
        _("bfloat16 in place of float32"),
        bf16,
        _("bfloat16 for products"),
        {
            "pytorch": lambda situation: (
                f'with torch.autocast("{situation.device}", dtype=torch.bfloat16):  # around the forward pass'
            ),
            "jax": "dtype=jnp.bfloat16  # of activations",
            "tensorflow": 'tf.keras.mixed_precision.set_global_policy("mixed_bfloat16")',
            "paddle": 'with paddle.amp.auto_cast(dtype="bfloat16"):',
        },
        precision_overrides,
    ),
)
