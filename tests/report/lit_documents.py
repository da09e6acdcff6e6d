"""A run on a device whose speed of light is known: invented figures, not measurements."""

from __future__ import annotations

from dataclasses import replace

from sample_documents import h200

from trainmark.measure.utilisation import ReferenceRate
from trainmark.store.report import RunReport

AXES, TAKEN = (("image_size", 224),), "2025-11-13T08:00:00+00:00"
HALF = ReferenceRate("NVIDIA H200", "resnet50", AXES, "half", 12_000.0, 512, "0.1.0", TAKEN)


def lit(*rates: ReferenceRate) -> RunReport:
    """Of its eight results the four in amp have a reference, unless others are given."""
    return replace(h200(), reference_rates=rates or (HALF,))
