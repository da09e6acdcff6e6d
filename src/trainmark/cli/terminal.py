"""What commands write to a terminal or a pipe."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import click

from trainmark.base.errors import UserError
from trainmark.base.text import HIDDEN, one_line
from trainmark.metric import score

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console

    from trainmark.measure.figure import Finish
    from trainmark.metric import Metric
    from trainmark.runner.progress import EpochSeen, TrainingProgress
    from trainmark.store.trial import TrialRecord
    from trainmark.suite.plan import PlannedTrial
    from trainmark.view.blocks import Page
    from trainmark.view.catalogue import Lang


STANDARD_DESCRIPTORS = 3


def escaped(text: str) -> str:
    """Return the text with hidden characters escaped as JSON escapes them: ESC becomes `\\u001b`."""
    return HIDDEN.sub(lambda match: f"\\u{ord(match.group()):04x}", text.replace("\r\n", "\n"))


class VisibleText(io.TextIOWrapper):
    """A text stream over the same bytes as `unfiltered`, without what a terminal would obey."""

    def __init__(self, unfiltered: TextIO) -> None:
        encoding = unfiltered.encoding or "utf-8"
        super().__init__(
            unfiltered.buffer,
            encoding="utf-8" if encoding.lower() in ("ascii", "us-ascii", "ansi_x3.4-1968") else encoding,
            errors="backslashreplace",
            line_buffering=unfiltered.isatty(),
            write_through=True,
        )
        self.unfiltered = unfiltered

    def write(self, text: str) -> int:
        super().write(escaped(text))
        return len(text)


def unfiltered(stream: TextIO) -> TextIO:
    """Return the stream behind a `VisibleText`, for documents and for consoles that escape by themselves."""
    return stream.unfiltered if isinstance(stream, VisibleText) else stream


@contextlib.contextmanager
def visible_output() -> Iterator[None]:
    """Let `sys.stdout` and `sys.stderr` show controls as escapes while the command runs."""
    _open_closed_descriptors()
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (_visible(stream) for stream in before)
    filtered = sys.stdout, sys.stderr
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
        for stream in filtered:
            if isinstance(stream, VisibleText):
                with contextlib.suppress(OSError, ValueError):
                    stream.detach()  # else its end would close the bytes below


def _visible(stream: TextIO | None) -> TextIO:
    if stream is None:
        return Path(os.devnull).open("w", encoding="utf-8")
    if not hasattr(stream, "buffer"):  # a notebook's, or a test's own
        return stream
    with contextlib.suppress(OSError, ValueError):
        stream.flush()
    return VisibleText(stream)


def _open_closed_descriptors() -> None:
    """Fill closed ones with /dev/null: a file opened later would else take the number and get our output."""
    with contextlib.suppress(OSError):
        while (number := os.open(os.devnull, os.O_RDWR)) < STANDARD_DESCRIPTORS:
            os.set_inheritable(number, True)
        os.close(number)


def print_json(value: Any) -> None:
    """Print one JSON document; what a terminal or UTF-8 cannot take becomes its JSON escape on the way."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def rendered(page: Page, kind: str, lang: Lang = "en", width: int | None = None, style: str = "") -> str:
    """Return a page as `text`, `md` or `html`."""
    from trainmark.view import html, markdown, terminal

    if kind == "text":
        return terminal.render(page, lang, width)
    return markdown.render(page, lang) if kind == "md" else html.render(page, lang, style)


def deliver(document: str, kind: str, out: Path | None) -> None:
    """Print a document, or write it to a file and print the name of that."""
    if out is None:
        # A page is for a browser, and its scripts hold such characters as others must not see.
        click.echo(document, nl=False, file=unfiltered(sys.stdout) if kind == "html" else None)
        return
    from trainmark.base.files import write_text

    try:
        write_text(out, document)
    except OSError as error:
        raise UserError(f"{out} cannot be written: {error.strerror}.") from error
    click.echo(str(out))


def terminal_width() -> int | None:
    """Return the columns of the terminal, or of COLUMNS; None where output is a file or a pipe, never cut."""
    if "COLUMNS" in os.environ or sys.stdout.isatty():
        return shutil.get_terminal_size((0, 0)).columns or None
    return None


def flush() -> OSError | None:
    """Write out what is pending; return what went wrong, other than that the reader has gone (`| head`)."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            discard_output()
        except OSError as error:
            discard_output()
            return error
    return None


def discard_output() -> None:
    """Let standard output lead nowhere, so that nothing more fails at the end of the process."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def console(stderr: bool = False, **options: Any) -> Console:
    """Return a console of rich's whose text is escaped and whose own styles and moves are not."""
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

    class VisibleConsole(Console):
        def render(
            self, renderable: RenderableType, options: ConsoleOptions | None = None
        ) -> Iterator[Segment]:
            for segment in super().render(renderable, options):
                text, style, control = segment
                yield segment if control else Segment(escaped(text), style)

    stream = sys.stderr if stderr else sys.stdout
    return VisibleConsole(file=unfiltered(stream), highlight=False, **options)


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


class Lines(Screen):
    """A line for each epoch of a training, and one for a trial; after the first, how long the others take."""

    def __init__(self) -> None:
        self._number, self._total = 0, 0
        self._epochs_told = 0
        self._trial: PlannedTrial | None = None
        self._trial_began = 0.0
        self._seconds_left: float | None = None
        self._now: tuple[int, float | None, TrainingProgress | None] = (0, None, None)

    def trial_began(self, trial: PlannedTrial, number: int, total: int, seconds_left: float | None) -> None:
        if seconds_left is not None and self._seconds_left is None:
            more = total - number + 1
            self.note(f"about {clock(seconds_left)} for {more} more trial{'s' if more > 1 else ''}")
        self._number, self._total = number, total
        self._epochs_told = 0
        self._trial, self._trial_began, self._seconds_left = trial, time.monotonic(), seconds_left
        self._now = (0, None, None)

    def progress(self, steps: int, rate: float | None, training: TrainingProgress | None = None) -> None:
        self._now = (steps, rate, training)
        if training is not None:
            for seen in training.seen[self._epochs_told :]:
                self.note(f"[{self._number:>3}/{self._total}] {epoch_line(seen, training.epochs)}")
            self._epochs_told = len(training.seen)

    def trial_ended(self, trial: PlannedTrial, record: TrialRecord) -> None:
        self._trial = None
        self.note(f"[{self._number:>3}/{self._total}] {ended(trial, record)}")

    def standing(self) -> str:
        """Return the trial, its step, the current rate and the time left."""
        trial, (steps, rate, training) = self._trial, self._now
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


class Moving(MovingLine, Lines):
    """The same, on a line that moves."""

    def __init__(self) -> None:
        Lines.__init__(self)
        MovingLine.__init__(self)

    def trial_began(self, trial: PlannedTrial, number: int, total: int, seconds_left: float | None) -> None:
        super().trial_began(trial, number, total, seconds_left)
        self.show(self.standing())

    def progress(self, steps: int, rate: float | None, training: TrainingProgress | None = None) -> None:
        super().progress(steps, rate, training)
        self.show(self.standing())


def live_display() -> Lines:
    return Moving() if sys.stderr.isatty() else Lines()


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
