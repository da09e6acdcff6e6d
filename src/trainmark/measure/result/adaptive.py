"""When to stop adding trials."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from trainmark.measure.statistics.intervals import CONFIDENCE, median_interval


def tight_enough(values: Sequence[float], half_width: float) -> bool:
    """Whether half the 95 % interval is at most `half_width` of the median; never before six trials."""
    interval = median_interval(values)
    if interval is None or interval.confidence < CONFIDENCE:
        return False
    return (interval.high - interval.low) / 2 <= half_width * statistics.median(values)
