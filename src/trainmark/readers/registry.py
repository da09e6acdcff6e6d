"""The readers by name: a file in this folder with a `read` is one."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from trainmark.events import Event
from trainmark.readers.output import Output

SHARED = {"__init__", "output", "registry"}


@cache
def names() -> tuple[str, ...]:
    return tuple(sorted(p.stem for p in Path(__file__).parent.glob("*.py") if p.stem not in SHARED))


def reader(name: str) -> Callable[[Output], Iterator[Event]]:
    read: Callable[[Output], Iterator[Event]] = importlib.import_module(f"trainmark.readers.{name}").read
    return read
