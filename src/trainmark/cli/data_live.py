"""What `trainmark data` shows while it works: a moving bar on a terminal, now and then a line elsewhere."""

from __future__ import annotations

import contextlib
import sys
import time
from types import TracebackType

import click

SECONDS_BETWEEN_LINES = 10.0


class Lines:
    """For logs and pipes, on standard error."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._told = time.monotonic()

    def __enter__(self) -> Lines:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def progress(self, done: int, total: int) -> None:
        now = time.monotonic()
        if now - self._told >= SECONDS_BETWEEN_LINES:
            self._told = now
            self.note(f"{self._what} {done:,} of {total:,}")

    def note(self, text: str) -> None:
        with contextlib.suppress(OSError):  # a terminal that is gone must not end the work
            click.echo(text, err=True)


class Moving(Lines):
    """For a terminal: how many of how many, how fast, how long still."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            console=Console(stderr=True, highlight=False),
            transient=True,
        )
        self._task = self._bar.add_task(what, total=None, rate="")
        self._first: tuple[float, int] | None = None

    def __enter__(self) -> Moving:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def progress(self, done: int, total: int) -> None:
        now = time.monotonic()
        began, before = self._first = self._first or (now, done)
        rate = f"{(done - before) / (now - began):,.0f}/s" if now > began else ""
        with contextlib.suppress(OSError):
            self._bar.update(self._task, completed=done, total=total, rate=rate)

    def note(self, text: str) -> None:
        from rich.text import Text

        with contextlib.suppress(OSError):
            self._bar.console.print(Text(text), soft_wrap=True)


def data_display(what: str) -> Lines:
    return Moving(what) if sys.stderr.isatty() else Lines(what)
