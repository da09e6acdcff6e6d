"""Ctrl-C, understood: once, finish this trial and stop; twice, stop now."""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any


class Interrupts:
    """While it is open, signals are counted instead of raised; `stop_now` and `stop_soon` tell."""

    def __init__(self, told: Callable[[str], None]) -> None:
        self._told = told
        self._level = 0
        self._before: dict[int, Any] = {}

    @property
    def stop_soon(self) -> bool:
        return self._level > 0

    @property
    def stop_now(self) -> bool:
        return self._level > 1

    def __enter__(self) -> Interrupts:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            self._before[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._level = min(2, self._level + (1 if number == signal.SIGINT else 2))
        if self._level == 1:
            self._told("finishing this trial, then stopping; Ctrl-C again to stop now")
        else:
            self._told("stopping now")
