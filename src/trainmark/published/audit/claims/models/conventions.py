"""How many operations a token of a dense transformer takes, under each convention that reports use.

Forward and backward pass over N parameters are 6 N (Kaplan et al. 2020, §2.1). Attention adds 12 L C T for
L layers of width C at length T, half of it where only the causal half is counted. Counting the forward pass
that activation checkpointing repeats makes 8 of every 6 (Korthikanti et al. 2022, appendix A).
"""

from __future__ import annotations

from dataclasses import dataclass

from trainmark.published.audit.report.number import Number

RECOMPUTED = 4 / 3
# A name rounds: `7B` stands for 6.7 to 8.5 thousand million, `1B` for up to half as many again.
ROUNDED_NAME = {1: (0.85, 1.25), 2: (0.85, 1.15), 3: (0.95, 1.05)}
SMALLEST_ROUNDED = (2e9, (0.8, 1.6))
# Without token embeddings, which some leave out: a third of a small model, little of a large one.
WITHOUT_EMBEDDINGS = ((1e9, 0.65), (5e9, 0.8), (float("inf"), 0.9))
# Width and depth follow from the size only roughly: models are 60 to 180 times as wide as deep.
WIDTH_OVER_DEPTH = 128
SHAPE = (0.55, 1.8)
# Where the length is not told, attention may add this much.
UNTOLD_ATTENTION = 0.5


@dataclass(frozen=True)
class Convention:
    """A way to count, the least and most operations a token that it allows, and a likely number between."""

    name: str
    low: float
    high: float
    likely: float

    def allows(self, operations: float) -> bool:
        return self.low <= operations <= self.high


def conventions(
    parameters: Number, is_exact: bool, length: float | None, layers: float | None, width: float | None
) -> list[Convention]:
    """All ways to count, the usual ones first."""
    least, most = _sizes(parameters, is_exact)
    attention_low, attention_high = _attention(parameters.value, length, layers, width)
    embedded = next(share for size, share in WITHOUT_EMBEDDINGS if parameters.value < size)
    usual_low, usual_high = 6 * least * 0.98, 6 * most * (1 + attention_high) * 1.02
    likely = 6 * parameters.value * (1 + (attention_low + attention_high) / 3)
    recomputed = RECOMPUTED * usual_low * (1 + attention_low), RECOMPUTED * usual_high, RECOMPUTED * likely
    return [
        Convention("6 N, with or without attention", usual_low, usual_high, likely),
        Convention("6 N without embeddings", 6 * least * embedded, usual_low, likely),
        Convention("8 N, with recomputation", *recomputed),
    ]


def _sizes(parameters: Number, is_exact: bool) -> tuple[float, float]:
    if is_exact:
        return parameters.low, parameters.high
    digits = len(f"{parameters.value:.3g}".replace(".", "").partition("e")[0].rstrip("0")) or 1
    low, high = ROUNDED_NAME[min(3, digits)]
    if digits == 1 and parameters.value < SMALLEST_ROUNDED[0]:
        low, high = SMALLEST_ROUNDED[1]
    return parameters.value * low, parameters.value * high


def _attention(
    size: float, length: float | None, layers: float | None, width: float | None
) -> tuple[float, float]:
    """What attention adds to 6 N, as a share of it: from causal to full."""
    if length is None:
        return 0.0, UNTOLD_ATTENTION
    if layers and width:
        full = 2 * layers * width * length / size
        return full / 2, full
    rough = length / (6 * (size * WIDTH_OVER_DEPTH / 12) ** (1 / 3))
    return 0.5 * SHAPE[0] * rough, SHAPE[1] * rough
