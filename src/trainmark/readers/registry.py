"""The readers of a trial's own output, by name: a file in `trials/` with a `read` is one."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from trainmark.events import Event
from trainmark.readers.trials.output import Output

FOLDER = Path(__file__).with_name("trials")
SHARED = {"__init__", "output"}


@cache
def names() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in SHARED))


def reader(name: str) -> Callable[[Output], Iterator[Event]]:
    read: Callable[[Output], Iterator[Event]] = importlib.import_module(
        f"trainmark.readers.trials.{name}"
    ).read
    return read
