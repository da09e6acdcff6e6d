"""What `trainmark run` shows: a moving line on a terminal, a line per trial or epoch elsewhere."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from trainmark.cli.common.screen import MovingLine, Screen, clock
from trainmark.metric import score
from trainmark.visible import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trainmark.measure.figure import Finish
    from trainmark.metric import Metric
    from trainmark.runner.trial.follow import EpochSeen, Training
    from trainmark.store.trial import TrialRecord
    from trainmark.suite.plan import Trial


class Lines(Screen):
    """A line for each epoch of a training, and one for a trial; after the first, how long the others take."""

    def __init__(self) -> None:
        self._number, self._total = 0, 0
        self._epochs_told = 0
        self._trial: Trial | None = None
        self._trial_began = 0.0
        self._seconds_left: float | None = None
        self._now: tuple[int, float | None, Training | None] = (0, None, None)

    def trial_began(self, trial: Trial, number: int, total: int, seconds_left: float | None) -> None:
        if seconds_left is not None and self._seconds_left is None:
            more = total - number + 1
            self.note(f"about {clock(seconds_left)} for {more} more trial{'s' if more > 1 else ''}")
        self._number, self._total = number, total
        self._epochs_told = 0
        self._trial, self._trial_began, self._seconds_left = trial, time.monotonic(), seconds_left
        self._now = (0, None, None)

    def progress(self, steps: int, rate: float | None, training: Training | None = None) -> None:
        self._now = (steps, rate, training)
        if training is not None:
            for seen in training.seen[self._epochs_told :]:
                self.note(f"[{self._number:>3}/{self._total}] {epoch_line(seen, training.epochs)}")
            self._epochs_told = len(training.seen)

    def trial_ended(self, trial: Trial, record: TrialRecord) -> None:
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

    def trial_began(self, trial: Trial, number: int, total: int, seconds_left: float | None) -> None:
        super().trial_began(trial, number, total, seconds_left)
        self.show(self.standing())

    def progress(self, steps: int, rate: float | None, training: Training | None = None) -> None:
        super().progress(steps, rate, training)
        self.show(self.standing())


def live_display() -> Lines:
    return Moving() if sys.stderr.isatty() else Lines()


def ended(trial: Trial, record: TrialRecord) -> str:
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


def course(steps: int, training: Training) -> list[str]:
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
