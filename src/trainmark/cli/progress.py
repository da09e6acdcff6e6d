"""Progress of long work on standard error: in a terminal on a line that moves, in a pipe line by line."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

import click

from trainmark.base.text import one_line
from trainmark.metric import score

if TYPE_CHECKING:
    from trainmark.measure.figure import Finish
    from trainmark.metric import Metric
    from trainmark.runner.progress import EpochSeen, TrainingProgress
    from trainmark.store.trial import TrialRecord
    from trainmark.suite.plan import PlannedTrial


Self = TypeVar("Self", bound="Progress")
SILENCE_SECONDS = 30.0
SECONDS_BETWEEN_LINES = 10.0


class Progress:
    """What long work says of itself.

    `note` is a line that stays; `show` tells what is under way, `progress` how many of how many are done.
    In a pipe what is under way becomes a line where nothing was said for a while.
    """

    def __init__(self, what: str = "", moving: bool | None = None) -> None:
        self._what, self._now = what, what
        self._moving = sys.stderr.isatty() if moving is None else moving
        self._bar: Any = None
        self._first: tuple[float, int] | None = None
        self._began = self._noted_at = time.monotonic()
        self._left = threading.Event()

    def __enter__(self: Self) -> Self:
        self._began = self._noted_at = time.monotonic()
        if self._moving:
            self._bar = _bar(self._what)
            self._bar.start()
        else:
            threading.Thread(target=self._give_signs, name="sign-of-life", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._left.set()
        if self._bar is not None:
            self._bar.stop()

    def note(self, text: str) -> None:
        self._noted_at = time.monotonic()
        with contextlib.suppress(OSError):  # a terminal that is gone must not end the work
            if self._bar is None:
                click.echo(text, err=True)
            else:
                from rich.text import Text

                self._bar.console.print(Text(text), soft_wrap=True)

    def show(self, text: str) -> None:
        self._now = text
        self._move(description=text)

    def progress(self, done: int, total: int, what: str = "") -> None:
        """Show the count and the time left; `what` is at hand, and in a pipe a line where it changes."""
        now = time.monotonic()
        began, before = self._first = self._first or (now, done)
        rate = (done - before) / (now - began) if now > began else 0.0
        if what:
            line = f"{self._what} [{done}/{total}] {what}"
            is_due = line != self._now
        else:
            left = f"  {rate:,.0f}/s  {clock((total - done) / rate)} left" if rate else ""
            line = f"{self._what} {done:,} of {total:,}{left}"
            is_due = now - self._noted_at >= SECONDS_BETWEEN_LINES
        self._now = line
        if self._bar is not None:
            self._move(completed=done, total=total, what=what or (f"{rate:,.0f}/s" if rate else ""))
        elif is_due:
            self.note(line)

    def standing(self) -> str:
        """Return what is under way, in a line."""
        return self._now or "still at work"

    def _move(self, **fields: Any) -> None:
        if self._bar is not None:
            with contextlib.suppress(OSError):
                self._bar.update(self._bar.task_ids[0], **fields)

    def _give_signs(self) -> None:
        while not self._left.wait(max(0.0, self._noted_at + SILENCE_SECONDS - time.monotonic())):
            if time.monotonic() >= self._noted_at + SILENCE_SECONDS:
                self.note(f"… {self.standing()}  {clock(time.monotonic() - self._began)} since the start")


def _bar(what: str) -> Any:
    """Return rich's display: a bar with count and time left as soon as there is a total, until then a dot."""
    from rich import progress

    from trainmark.cli.terminal import console

    class Counted(progress.ProgressColumn):
        """A column of what is counted."""

        def __init__(self, column: progress.ProgressColumn) -> None:
            super().__init__()
            self.column = column

        def render(self, task: progress.Task) -> Any:
            return "" if task.total is None else self.column(task)

    counts = (progress.BarColumn(bar_width=24), progress.MofNCompleteColumn(), progress.TimeRemainingColumn())
    bar = progress.Progress(
        progress.SpinnerColumn("dots"),
        progress.TextColumn("{task.description}", markup=False),
        *map(Counted, counts),
        progress.TextColumn("{task.fields[what]}", markup=False),
        console=console(stderr=True),
        transient=True,
    )
    bar.add_task(what, total=None, what="")
    return bar


def clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


class TrialProgress(Progress):
    """A line for each epoch of a training, and one for a trial; after the first, how long the others take."""

    def __init__(self, moving: bool | None = None) -> None:
        super().__init__(moving=moving)
        self._number, self._total = 0, 0
        self._epochs_told = 0
        self._trial: PlannedTrial | None = None
        self._trial_began = 0.0
        self._seconds_left: float | None = None
        self._seen: tuple[int, float | None, TrainingProgress | None] = (0, None, None)

    def trial_began(self, trial: PlannedTrial, number: int, total: int, seconds_left: float | None) -> None:
        if seconds_left is not None and self._seconds_left is None:
            more = total - number + 1
            self.note(f"about {clock(seconds_left)} for {more} more trial{'s' if more > 1 else ''}")
        self._number, self._total = number, total
        self._epochs_told = 0
        self._trial, self._trial_began, self._seconds_left = trial, time.monotonic(), seconds_left
        self._seen = (0, None, None)
        self.show(self.standing())

    def progress(  # type: ignore[override]  # of steps, whose number a trial may not know
        self, steps: int, rate: float | None, training: TrainingProgress | None = None
    ) -> None:
        self._seen = (steps, rate, training)
        if training is not None:
            for seen in training.seen[self._epochs_told :]:
                self.note(f"[{self._number:>3}/{self._total}] {epoch_line(seen, training.epochs)}")
            self._epochs_told = len(training.seen)
        self.show(self.standing())

    def trial_ended(self, trial: PlannedTrial, record: TrialRecord) -> None:
        self._trial, self._now = None, ""
        self.note(f"[{self._number:>3}/{self._total}] {ended(trial, record)}")

    def standing(self) -> str:
        """Return the trial, its step, the current rate and the time left."""
        trial, (steps, rate, training) = self._trial, self._seen
        if trial is None:
            return super().standing()
        parts = [f"[{self._number}/{self._total}] {trial.id}"]
        if training is None:
            # Of a program that is only watched, nobody knows how many there will be.
            watched = getattr(trial.case.workload, "untouched", False)
            of_all = "" if watched else f"/{trial.case.rules.steps}"
            parts.append(f"step {steps:,}{of_all}" if steps else "starting")
        else:
            parts += course(steps, training)
        if rate is not None:
            parts.append(f"{rate:,.1f}/s now")
        if training is not None and training.left is not None:
            parts.append(f"at most {clock(training.left)} left")
        elif self._seconds_left is not None:
            left = max(0.0, self._seconds_left - (time.monotonic() - self._trial_began))
            parts.append(f"{clock(left)} left")
        return "  ".join(parts)


def ended(trial: PlannedTrial, record: TrialRecord) -> str:
    """One line for one finished trial."""
    head = f"{trial.id}  {record.outcome}"
    if record.figure is None:
        return f"{head}  {one_line(record.detail)}"
    figure = record.figure
    doubts = f"  ! {', '.join(doubt.code.value for doubt in figure.doubts)}" if figure.doubts else ""
    retried = f"  after {len(record.retries)} retry" if record.retries else ""
    finished = f"  {finish_words(figure.finish)}" if figure.finish else ""
    rate = f"{figure.throughput:,.2f} {figure.unit}/s"
    note = f"  ({one_line(record.detail)})" if record.detail else ""
    return f"{head}{finished}  {rate}  {record.seconds:.0f} s{retried}{doubts}{note}"


def finish_words(finish: Finish) -> str:
    """`perplexity=20 in 1:12:04, 38 epochs`, or how far it came."""
    metric, value = finish.metric, score(finish.best, finish.metric)
    best = ""
    if metric is not None and value is not None:
        best = f"best {metric.title} {metric.text(value)} in epoch {finish.best_epoch}"
    if finish.target is None:
        return best or f"{len(finish.epochs)} epochs"
    if finish.time2train is None:
        return ", ".join(filter(None, (f"{finish.target} not reached", best)))
    return f"{finish.target} in {clock(finish.time2train)}, {finish.epochs_to_target} epochs"


def course(steps: int, training: TrainingProgress) -> list[str]:
    """`epoch 3/90`, `step 1,250/45,000`, `loss 2.31`, `accuracy 41.20 %`."""
    parts = [f"epoch {training.epoch}/{training.epochs}", f"step {steps:,}/{training.steps:,}"]
    if training.evaluating:
        parts.append("evaluating")
    if training.loss is not None:
        parts.append(f"loss {training.loss:.3f}")
    return parts + scores_words(training.scores[:1])


def epoch_line(seen: EpochSeen, epochs: int) -> str:
    parts = [f"epoch {seen.epoch:>{len(str(epochs))}}/{epochs}", f"step {seen.step:,}"]
    parts += [] if seen.loss is None else [f"loss {seen.loss:.3f}"]
    parts += scores_words(seen.scores)
    parts += [f"{seen.rate:,.1f}/s"] if seen.rate is not None else []
    parts.append(f"{clock(seen.elapsed)} elapsed")
    parts += [f"at most {clock(seen.left)} left"] if seen.left else []
    return "  ".join(parts)


def scores_words(scores: Iterable[tuple[Metric, float]]) -> list[str]:
    """`accuracy 41.20 %` for each of them."""
    return [f"{metric.title} {metric.text(value)}" for metric, value in scores]
