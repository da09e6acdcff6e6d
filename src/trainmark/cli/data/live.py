"""What `trainmark data` shows while it works: a moving bar on a terminal, now and then a line elsewhere."""

from __future__ import annotations

import sys
import time

from trainmark.cli.common.screen import MovingBar, Screen

SECONDS_BETWEEN_LINES = 10.0


class Lines(Screen):
    def __init__(self, what: str) -> None:
        self._what = what
        self._last_line_at = time.monotonic()

    def progress(self, done: int, total: int) -> None:
        now = time.monotonic()
        if now - self._last_line_at >= SECONDS_BETWEEN_LINES:
            self._last_line_at = now
            self.note(f"{self._what} {done:,} of {total:,}")


class Moving(MovingBar, Lines):
    """How many of how many, how fast, how long still."""

    def __init__(self, what: str) -> None:
        from rich.progress import TextColumn, TimeRemainingColumn

        Lines.__init__(self, what)
        MovingBar.__init__(self, what, TextColumn("{task.fields[rate]}"), TimeRemainingColumn(), rate="")
        self._first: tuple[float, int] | None = None

    def progress(self, done: int, total: int) -> None:
        now = time.monotonic()
        began, before = self._first = self._first or (now, done)
        self.show(done, total, rate=f"{(done - before) / (now - began):,.0f}/s" if now > began else "")


def data_display(what: str) -> Lines:
    return Moving(what) if sys.stderr.isatty() else Lines(what)
