"""Standard error while something takes long: lines for logs and pipes, something that moves for a person."""

from __future__ import annotations

import contextlib
from types import TracebackType
from typing import Any, TypeVar

import click

Self = TypeVar("Self", bound="Screen")


class Screen:
    """For logs and pipes: nothing moves."""

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def note(self, text: str) -> None:
        with contextlib.suppress(OSError):  # a terminal that is gone must not end the work
            click.echo(text, err=True)


class MovingScreen(Screen):
    """For a terminal: `shown` is one of rich's that start and stop; notes stand above it."""

    def __init__(self, shown: Any, console: Any) -> None:
        self._shown, self._console = shown, console

    def __enter__(self: Self) -> Self:
        self._shown.start()  # type: ignore[attr-defined]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._shown.stop()

    def note(self, text: str) -> None:
        from rich.text import Text

        with contextlib.suppress(OSError):
            self._console.print(Text(text), soft_wrap=True)


class MovingLine(MovingScreen):
    def __init__(self) -> None:
        from rich.console import Console
        from rich.status import Status

        console = Console(stderr=True, highlight=False)
        super().__init__(Status("", console=console, spinner="dots"), console)

    def show(self, text: str) -> None:
        from rich.text import Text

        with contextlib.suppress(OSError):
            self._shown.update(Text(text))


class MovingBar(MovingScreen):
    """`title` and a bar, then the columns given; `show` takes what these name in their fields."""

    def __init__(self, title: str, *columns: Any, **fields: Any) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        console = Console(stderr=True, highlight=False)
        common = (TextColumn("{task.description}"), BarColumn(bar_width=24), MofNCompleteColumn())
        super().__init__(Progress(*common, *columns, console=console, transient=True), console)
        self._task = self._shown.add_task(title, total=None, **fields)

    def show(self, done: int, total: int, **fields: Any) -> None:
        with contextlib.suppress(OSError):
            self._shown.update(self._task, completed=done, total=total, **fields)
