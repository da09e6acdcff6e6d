"""Standard error while something takes long: lines for logs and pipes, something that moves for a person."""

from __future__ import annotations

import contextlib
import threading
import time
from types import TracebackType
from typing import Any, TypeVar

import click

from trainmark.cli.common.terminal import console

Self = TypeVar("Self", bound="Screen")


SILENCE_SECONDS = 30.0


class Screen:
    """For logs and pipes: nothing moves, but where nothing was said for a while a line says how it stands."""

    _noted_at = 0.0

    def __enter__(self: Self) -> Self:
        self._began = self._noted_at = time.monotonic()
        self._left = threading.Event()
        threading.Thread(target=self._give_signs, name="sign-of-life", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._left.set()

    def standing(self) -> str:
        """Return what is under way, in a line."""
        return "still at work"

    def _give_signs(self) -> None:
        while not self._left.wait(max(0.0, self._noted_at + SILENCE_SECONDS - time.monotonic())):
            if time.monotonic() >= self._noted_at + SILENCE_SECONDS:
                self.note(f"… {self.standing()}  {clock(time.monotonic() - self._began)} since the start")

    def note(self, text: str) -> None:
        self._noted_at = time.monotonic()
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
        from rich.status import Status

        shown_on = console(stderr=True)
        super().__init__(Status("", console=shown_on, spinner="dots"), shown_on)

    def show(self, text: str) -> None:
        from rich.text import Text

        with contextlib.suppress(OSError):
            self._shown.update(Text(text))


class MovingBar(MovingScreen):
    """`title` and a bar, then the columns given; `show` takes what these name in their fields."""

    def __init__(self, title: str, *columns: Any, **fields: Any) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        shown_on = console(stderr=True)
        description = TextColumn("{task.description}", markup=False)
        common = (description, BarColumn(bar_width=24), MofNCompleteColumn())
        super().__init__(Progress(*common, *columns, console=shown_on, transient=True), shown_on)
        self._task = self._shown.add_task(title, total=None, **fields)

    def show(self, done: int, total: int, **fields: Any) -> None:
        with contextlib.suppress(OSError):
            self._shown.update(self._task, completed=done, total=total, **fields)


def clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
