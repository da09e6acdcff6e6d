"""bfloat16: products at another peak, and half of the bytes elsewhere."""

from __future__ import annotations

from trainmark.explain.what_if.change import Change, Overrides
from trainmark.explain.what_if.rebuild import Prediction, rebuilt
from trainmark.explain.what_if.situation import MEMORY_CLASSES, PRODUCT_CLASSES, Part, Situation

# A product reaches less of a higher peak: its share of it falls with this power of the ratio of the peaks.
# An estimate: 0.96 at twice the peak, 0.85 at fifteen times; the record tells how far it is off.
TEMPER = 0.06
HALF_BYTES = 0.5
# PyTorch's eager batch norm in bfloat16 is not cuDNN's: on an H200 ResNet-50 at batch 256 takes 54.1 ms with
# it and 42.0 ms in float16 (docs/results/h200), so that of float32's time this much is left.
EAGER_BATCH_NORM = 0.85


def bf16(situation: Situation) -> Prediction | None:
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
    # Activations have half of the bytes; losses and statistics, which stay in float32, are few.
    alone |= {part.name: part.alone * HALF_BYTES for part in situation.parts if part.name in MEMORY_CLASSES}
    settings, norm = situation.settings, situation.part("normalisation")
    if (
        norm is not None
        and settings.framework == "pytorch"
        and not settings.compiler
        and situation.has_batch_norm
    ):
        alone[norm.name] = norm.alone * EAGER_BATCH_NORM
    if situation.device == "cpu":
        # Vector units convert every bfloat16 to float32 and back: what is saved in bytes is spent there.
        alone |= {part.name: part.alone for part in situation.parts if part.name in MEMORY_CLASSES}
    halved = "unchanged (converted on the fly)" if situation.device == "cpu" else "half of the bytes"
    why = (
        f"Products at {then / now:.1f} times the peak, as far from it as now and a little further; "
        f"elementwise operations and normalisation: {halved}; the optimiser stays in float32."
    )
    return Prediction(rebuilt(situation, alone), why)


def product_seconds(
    part: Part,
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
    Change(
        "bf16",
        "bfloat16 in place of float32",
        bf16,
        {
            "pytorch": 'with torch.autocast("cuda", dtype=torch.bfloat16): around the forward pass',
            "jax": "dtype=jnp.bfloat16 for activations",
            "tensorflow": 'tf.keras.mixed_precision.set_global_policy("mixed_bfloat16")',
            "paddle": 'with paddle.amp.auto_cast(dtype="bfloat16"):',
            "": "bfloat16 for products",
        },
        precision_overrides,
    ),
)
