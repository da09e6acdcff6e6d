"""What `trainmark run` shows: a moving line on a terminal, a line per trial elsewhere."""

from __future__ import annotations

import contextlib
import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from trainmark.store.trial import TrialRecord
    from trainmark.suite.plan import Trial


class Lines:
    """For logs and pipes: one line when a trial has ended, on standard error."""

    def __init__(self) -> None:
        self._number, self._total = 0, 0

    def __enter__(self) -> Lines:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def trial_began(self, trial: Trial, number: int, total: int, seconds_left: float | None) -> None:
        self._number, self._total = number, total

    def progress(self, steps: int, rate: float | None) -> None:
        return None

    def trial_ended(self, trial: Trial, record: TrialRecord) -> None:
        self.note(f"[{self._number:>3}/{self._total}] {ended(trial, record)}")

    def note(self, text: str) -> None:
        with contextlib.suppress(OSError):  # a terminal that is gone must not end the run
            click.echo(text, err=True)


class Moving(Lines):
    """For a terminal: the trial, its step, the current rate and the time left, on one line that moves."""

    def __init__(self) -> None:
        super().__init__()
        from rich.console import Console
        from rich.status import Status

        self._console = Console(stderr=True, highlight=False)
        self._status = Status("", console=self._console, spinner="dots")
        self._trial: Any = None
        self._began = 0.0
        self._left: float | None = None

    def __enter__(self) -> Moving:
        self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._status.stop()

    def trial_began(self, trial: Trial, number: int, total: int, seconds_left: float | None) -> None:
        super().trial_began(trial, number, total, seconds_left)
        self._trial, self._began, self._left = trial, time.monotonic(), seconds_left
        self.progress(0, None)

    def progress(self, steps: int, rate: float | None) -> None:
        from rich.text import Text

        parts = [f"[{self._number}/{self._total}] {self._trial.id}"]
        parts.append(f"step {steps}/{self._trial.case.rules.steps}" if steps else "starting")
        if rate is not None:
            parts.append(f"{rate:,.1f}/s now")
        if self._left is not None:
            left = max(0.0, self._left - (time.monotonic() - self._began))
            parts.append(f"{clock(left)} left")
        with contextlib.suppress(OSError):
            self._status.update(Text("  ".join(parts)))

    def note(self, text: str) -> None:
        from rich.text import Text

        with contextlib.suppress(OSError):
            self._console.print(Text(text), soft_wrap=True)


def live_display() -> Lines:
    return Moving() if sys.stderr.isatty() else Lines()


def ended(trial: Trial, record: TrialRecord) -> str:
    """One line for one finished trial."""
    head = f"{trial.id}  {record.outcome}"
    if record.figure is None:
        return f"{head}  {record.detail}"
    figure = record.figure
    doubts = f"  ! {', '.join(doubt.code.value for doubt in figure.doubts)}" if figure.doubts else ""
    retried = f"  after {len(record.retries)} retry" if record.retries else ""
    return f"{head}  {figure.throughput:,.2f} {figure.unit}/s  {record.seconds:.0f} s{retried}{doubts}"


def clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
