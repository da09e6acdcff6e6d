"""What `trainmark frameworks install` shows: a moving bar on a terminal, a line per package elsewhere."""

from __future__ import annotations

import contextlib
import sys
from types import TracebackType

import click


class Lines:
    """For logs and pipes, on standard error."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._told = ""

    def __enter__(self) -> Lines:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def progress(self, done: int, total: int, what: str) -> None:
        line = f"{self._name} [{done}/{total}] {what}"
        if line != self._told:
            self._told = line
            self.note(line)

    def note(self, text: str) -> None:
        with contextlib.suppress(OSError):  # a terminal that is gone must not end the install
            click.echo(text, err=True)


class Moving(Lines):
    """For a terminal: packages of all packages, and the one at hand."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[what]}", markup=False),
            console=Console(stderr=True, highlight=False),
            transient=True,
        )
        self._task = self._bar.add_task(name, total=None, what="")

    def __enter__(self) -> Moving:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def progress(self, done: int, total: int, what: str) -> None:
        with contextlib.suppress(OSError):
            self._bar.update(self._task, completed=done, total=total, what=what)

    def note(self, text: str) -> None:
        from rich.text import Text

        with contextlib.suppress(OSError):
            self._bar.console.print(Text(text), soft_wrap=True)


def install_display(name: str) -> Lines:
    return Moving(name) if sys.stderr.isatty() else Lines(name)
