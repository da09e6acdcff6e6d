"""Ctrl-C, understood: once, finish this trial and stop; twice, stop now."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from types import FrameType, TracebackType
from typing import Any

NOTES = {1: "finishing this trial, then stopping; Ctrl-C again to stop now", 2: "stopping now"}


class StoppedError(RuntimeError):
    """Work that was cut short, by the user or because its time was up."""

    def __init__(self, time_up: bool) -> None:
        super().__init__("its time was up" if time_up else "stopped by the user")
        self.time_up = time_up


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise StoppedError in the work below once its time is up, also inside a regular expression."""

    def raise_time_up(number: int, frame: FrameType | None) -> None:
        raise StoppedError(time_up=True)

    before = signal.signal(signal.SIGALRM, raise_time_up)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Interrupts:
    """While it is open, signals are counted instead of raised; `stop_now` and `stop_soon` tell."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._level = 0
        self._announced = 0
        self._raises = False
        self._before: dict[int, Any] = {}

    @property
    def stop_soon(self) -> bool:
        return self._level > 0

    def stop_now(self) -> bool:
        """Asked many times a second; what was understood is said here, for a handler may cut into a print."""
        if self._announced < self._level:
            self._announced = self._level
            self._tell(NOTES[self._level])
        return self._level > 1

    @contextlib.contextmanager
    def raised(self) -> Iterator[None]:
        """Raise `stop_now` as StoppedError in the work below, which cannot ask for it."""
        self._raises = True
        try:
            if self._level > 1:
                raise StoppedError(time_up=False)
            yield
        finally:
            self._raises = False

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
        if self._raises and self._level > 1:
            raise StoppedError(time_up=False)
