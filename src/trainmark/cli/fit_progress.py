"""What `trainmark fit` shows meanwhile: a moving line on a terminal, a line per try elsewhere."""

from __future__ import annotations

import contextlib
import sys
from types import TracebackType
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from trainmark.measure.fit import Try
    from trainmark.runner.fit_try import Setting


class Lines:
    """For logs and pipes: one line when a try has ended, on standard error."""

    def __init__(self) -> None:
        self._now = ""

    def __enter__(self) -> Lines:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def began(self, setting: Setting, batch: int) -> None:
        cap = f", {setting.cap / 2**30:.2f} GiB" if setting.cap else ""
        self._now = f"{setting}{cap}: batch {batch}"

    def ended(self, tried: Try) -> None:
        peak = f", {tried.peak / 2**30:.2f} GiB at its peak" if tried.peak is not None else ""
        self.note(f"{self._now} {'fits' if tried.fits else 'does not fit'}{peak} ({tried.seconds:.0f} s)")

    def note(self, text: str) -> None:
        with contextlib.suppress(OSError):  # a terminal that is gone must not end the search
            click.echo(text, err=True)


class Moving(Lines):
    """For a terminal: the batch that is tried now, on a line that moves below those that are done."""

    def __init__(self) -> None:
        super().__init__()
        from rich.console import Console
        from rich.status import Status

        self._console = Console(stderr=True, highlight=False)
        self._status = Status("", console=self._console, spinner="dots")

    def __enter__(self) -> Moving:
        self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._status.stop()

    def began(self, setting: Setting, batch: int) -> None:
        from rich.text import Text

        super().began(setting, batch)
        self._status.update(Text(self._now))

    def note(self, text: str) -> None:
        self._console.print(text, markup=False)


def progress() -> Lines:
    return Moving() if sys.stderr.isatty() else Lines()
