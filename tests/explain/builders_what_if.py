"""Steps of known parts: a GPU that is busy with everything a training has, and waits for this and that."""

from __future__ import annotations

from trainmark.explain.explanation import MeasuredPeaks
from trainmark.explain.what_if.situation import DatasheetPeaks, Situation, StepPart, TrainingSettings

MS = 1e-3
H200 = DatasheetPeaks(
    "H200 SXM", {"fp32": 67e12, "tf32": 494.5e12, "fp16": 989.5e12, "bf16": 989.5e12}, 4.8e12
)
A100 = DatasheetPeaks(
    "A100 80GB SXM", {"fp32": 19.5e12, "tf32": 156e12, "fp16": 312e12, "bf16": 312e12}, 2.039e12
)
# Milliseconds, launches, FLOP and bytes of one step: a convolutional network in bfloat16.
USUAL = {
    "convolution": StepPart("convolution", 40 * MS, 40 * MS, 160, flop=2e13, bytes=2e10, bound="arithmetic"),
    "matrix product": StepPart("matrix product", 2 * MS, 2 * MS, 3, flop=1e12, bytes=1e9, bound="arithmetic"),
    "normalisation": StepPart(
        "normalisation", 12 * MS, 12 * MS, 160, bytes=4e10, floor=10 * MS, bound="memory"
    ),
    "elementwise": StepPart("elementwise", 10 * MS, 10 * MS, 200, bytes=3e10, floor=8 * MS, bound="memory"),
    "optimiser": StepPart("optimiser", 0.3 * MS, 0.3 * MS, 4, bytes=7e8, floor=0.2 * MS, bound="memory"),
}


def gpu_step(
    idle: dict[str, float] | None = None,
    gaps: dict[str, float] | None = None,
    settings: TrainingSettings | None = None,
    **more: object,
) -> Situation:
    """Return a situation with the usual parts, or others in their place by name; its step is their sum."""
    named = {
        name.replace("_", " "): more.pop(name) for name in list(more) if isinstance(more[name], StepPart)
    }
    parts = tuple({**USUAL, **named}.values())
    causes, overlap = idle or {}, more.get("overlap", 0.0)
    usual = TrainingSettings(framework="pytorch", precision="bf16", layout="NHWC", batch=256)
    return Situation(
        step=sum(part.alone for part in parts) + sum(causes.values()) + overlap,  # type: ignore[operator]
        device="cuda",
        parts=parts,
        idle=causes,
        gaps=gaps or {},
        settings=settings or usual,
        peaks=MeasuredPeaks(700e12, 4e12, 400e9),
        datasheet=H200,
        **{"parameters": 25_000_000, **more},  # type: ignore[arg-type]
    )
