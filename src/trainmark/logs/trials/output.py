"""What a trial left behind, as a reader sees it; and the readers by name.

A reader is a file in this folder with a `read`, or any log format.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from trainmark.events import Event
from trainmark.logs.format_file import our_format
from trainmark.logs.recognition import format_names

FOLDER = Path(__file__).parent
SHARED = {"__init__", "observed", "observed_steps", "output"}


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


def reader_names() -> tuple[str, ...]:
    files = {path.stem for path in FOLDER.glob("*.py")} - SHARED
    return (*sorted(files), *format_names())


def reader(name: str) -> Callable[[Output], Iterator[Event]]:
    if name in format_names():
        # Imported here, since every reader imports this file.
        pattern = importlib.import_module("trainmark.logs.trials.pattern")
        return partial(pattern.read_format, our_format(name))
    read: Callable[[Output], Iterator[Event]] = importlib.import_module(f"trainmark.logs.trials.{name}").read
    return read
