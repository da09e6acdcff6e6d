"""Ctrl-C, understood: once, finish this trial and stop; twice, stop now."""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

SAID = {1: "finishing this trial, then stopping; Ctrl-C again to stop now", 2: "stopping now"}


class Interrupts:
    """While it is open, signals are counted instead of raised; `stop_now` and `stop_soon` tell."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._level = 0
        self._told = 0
        self._before: dict[int, Any] = {}

    @property
    def stop_soon(self) -> bool:
        return self._level > 0

    def stop_now(self) -> bool:
        """Asked many times a second; what was understood is said here, for a handler may cut into a print."""
        if self._told < self._level:
            self._told = self._level
            self._tell(SAID[self._level])
        return self._level > 1

    def __enter__(self) -> Interrupts:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if number == signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
                continue  # started with nohup
            self._before[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._level = min(2, self._level + (1 if number == signal.SIGINT else 2))
