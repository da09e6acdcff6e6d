"""What a trial left behind, as a reader sees it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


class ReaderError(ValueError):
    """Nothing to measure in what the program left; the message says what was looked for."""


@dataclass(frozen=True)
class Output:
    """The trial's `folder` holds `events/` and `logs/`; the rest is what the suite says of the program."""

    folder: Path
    world_size: int
    batch_per_device: int | None
    unit: str = "samples"
    pattern: str | None = None
    samples_per_step: float | None = None
    """Of all ranks together."""
