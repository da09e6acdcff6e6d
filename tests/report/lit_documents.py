"""A run on a device whose speed of light is known: invented figures, not measurements."""

from __future__ import annotations

from dataclasses import replace

from sample_documents import h200

from trainmark.measure.light import Yardstick
from trainmark.report.document import Document

HALF = Yardstick("NVIDIA H200", "resnet50", 224, "half", 12_000.0, 512, "0.1.0", "2025-11-13T08:00:00+00:00")


def lit(*light: Yardstick) -> Document:
    """Of its eight results the four in amp have a yardstick, unless others are given."""
    return replace(h200(), light=light or (HALF,))
