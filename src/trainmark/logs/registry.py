"""The readers of a trial's own output, by name: a file in `trials/` with a `read`, or any log format."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path

from trainmark.events import Event
from trainmark.logs.recognition import formats
from trainmark.logs.trials import pattern
from trainmark.logs.trials.output import Output

FOLDER = Path(__file__).with_name("trials")
SHARED = {"__init__", "observed", "observed_steps", "output"}


@cache
def _files() -> frozenset[str]:
    return frozenset(path.stem for path in FOLDER.glob("*.py") if path.stem not in SHARED)


def names() -> tuple[str, ...]:
    return (*sorted(_files()), *formats())


def knows(name: str) -> bool:
    """Whether there is such a reader; the formats, whose patterns take time to compile, are asked last."""
    return name in _files() or name in formats()


def reader(name: str) -> Callable[[Output], Iterator[Event]]:
    if name not in _files():
        return partial(pattern.read_format, formats()[name])
    read: Callable[[Output], Iterator[Event]] = importlib.import_module(f"trainmark.logs.trials.{name}").read
    return read
