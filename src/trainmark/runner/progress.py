"""How far a running trial is, how fast, and what it has learnt; and what a run shows while it goes on."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from trainmark.base.files import open_regular
from trainmark.events import Event, Mark, RunEnd, RunStart, Step
from trainmark.events.ranges import count_in
from trainmark.events.stream import LONGEST_LINE, StreamError, decode
from trainmark.metric import Metric, declared_metrics
from trainmark.store.trial import TrialRecord
from trainmark.suite.plan import PlannedTrial

RECENT_STEPS = 10

MetricValues = tuple[tuple[Metric, float], ...]


@dataclass(frozen=True)
class EpochSeen:
    """An epoch that is over, counted from 1; `scores` is empty where it was not evaluated."""

    epoch: int
    step: int
    elapsed: float
    rate: float | None
    loss: float | None
    scores: MetricValues = ()
    left: float | None = None


@dataclass(frozen=True)
class TrainingProgress:
    """Where a training by epochs stands; `left` is the most it can still take, in seconds."""

    epoch: int
    epochs: int
    steps: int
    evaluating: bool
    loss: float | None
    scores: MetricValues
    left: float | None
    seen: tuple[EpochSeen, ...]


class Follower:
    """Reads what has been added to one rank's events since the last look; cheap enough for every tick."""

    def __init__(self, events: Path, world_size: int) -> None:
        self._events = events
        self._world_size = world_size
        self._read = 0
        self._recent: deque[tuple[float, float]] = deque(maxlen=RECENT_STEPS)
        self.rate: float | None = None
        self._step_seconds: float | None = None
        self._course: _Course | None = None
        self.steps = 0

    def look(self) -> None:
        # A program that is only watched leaves its steps under another name.
        watched = self._events.parent.glob(f"observed-*-{self._events.name}")
        path = self._events if self._events.exists() else next(watched, self._events)
        try:
            with open_regular(path) as file:
                file.seek(self._read)
                added = file.read(LONGEST_LINE)
        except OSError:
            return
        whole, newline, rest = added.rpartition(b"\n")
        # A line without an end within its greatest length is none; it is passed over.
        self._read += len(added) if len(rest) == LONGEST_LINE else len(whole) + len(newline)
        for line in whole.splitlines():
            with contextlib.suppress(StreamError):
                self._take(decode(line))

    def _take(self, event: Event) -> None:
        if isinstance(event, Step) and event.mono is not None:
            self._recent.append((float(event.mono), float(event.samples or 0.0)))
            self.steps = event.step + 1
            self._measure()
        elif isinstance(event, RunStart):
            self._recent.clear()
            if self._course is None:
                self._course = _Course.of(event)
            if (resumed := count_in(event.facts, "resumed_step")) is not None:
                self.steps = resumed
        elif isinstance(event, Mark) and event.facts.get("state") in ("begin", "end"):
            # The time of an evaluation is nobody's step.
            self._recent.clear()
            if event.mono is not None and event.kind == "epoch":
                self._recent.append((float(event.mono), 0.0))
        if self._course is not None:
            self._course.take(event, self.steps, self._world_size, self._step_seconds)

    def _measure(self) -> None:
        if len(self._recent) < 2 or self._recent[-1][0] <= self._recent[0][0]:
            return
        seconds = self._recent[-1][0] - self._recent[0][0]
        samples = sum(count for _, count in list(self._recent)[1:])
        self.rate = self._world_size * samples / seconds if samples else None
        self._step_seconds = seconds / (len(self._recent) - 1)

    @property
    def training(self) -> TrainingProgress | None:
        """None for a trial that is not trained by epochs."""
        return self._course.standing(self.steps, self._step_seconds) if self._course else None


class _Course:
    """The epochs of one training, as rank 0 tells them."""

    def __init__(self, epochs: int, steps_per_epoch: int, began: float, metrics: Sequence[Metric]) -> None:
        self._epochs, self._steps_per_epoch = epochs, steps_per_epoch
        self._metrics = metrics
        self._began = began
        self._epoch = 0
        self._evaluating: float | None = None
        self._evaluations: list[float] = []
        self._loss: float | None = None
        self._scores: MetricValues = ()
        self._epoch_began, self._samples = began, 0.0
        self._waiting: EpochSeen | None = None
        self._seen: list[EpochSeen] = []

    @classmethod
    def of(cls, start: RunStart) -> _Course | None:
        epochs, steps = count_in(start.facts, "epochs"), count_in(start.facts, "steps_per_epoch")
        if epochs is None or not steps or start.wall is None:
            return None
        return cls(epochs, steps, start.wall, declared_metrics(start.facts))

    def take(self, event: Event, steps: int, world_size: int, step_seconds: float | None) -> None:
        if isinstance(event, Step):
            self._loss = event.loss if event.loss is not None else self._loss
            self._samples += world_size * float(event.samples or 0.0)
        elif isinstance(event, RunEnd):
            self._show(self._waiting)
        elif isinstance(event, Mark) and event.wall is not None:
            epoch, state = count_in(event.facts, "epoch"), event.facts.get("state")
            if epoch is None:
                return
            if (event.kind, state) == ("epoch", "begin"):
                self._show(self._waiting)
                self._epoch, self._epoch_began, self._samples = epoch, event.wall, 0.0
            elif (event.kind, state) == ("epoch", "end"):
                took = event.wall - self._epoch_began
                rate = self._samples / took if took > 0 else None
                self._waiting = EpochSeen(epoch + 1, steps, event.wall - self._began, rate, self._loss)
            elif (event.kind, state) == ("eval", "begin"):
                self._evaluating = event.wall
            elif (event.kind, state) == ("eval", "end"):
                self._evaluated(event, event.wall, steps, step_seconds)

    def _evaluated(self, event: Mark, wall: float, steps: int, step_seconds: float | None) -> None:
        if self._evaluating is not None:
            self._evaluations.append(wall - self._evaluating)
        self._evaluating = None
        values = ((metric, metric.value_in(event.facts)) for metric in self._metrics)
        self._scores = tuple((metric, value) for metric, value in values if value is not None)
        if (done := self._waiting) is not None:
            left = self._left(steps, step_seconds)
            self._show(replace(done, elapsed=wall - self._began, scores=self._scores, left=left))

    def _show(self, seen: EpochSeen | None) -> None:
        if seen is not None:
            self._seen.append(seen)
        self._waiting = None

    def _left(self, steps: int, step_seconds: float | None) -> float | None:
        """The steps left at the current rate, and as many evaluations an epoch as there were so far."""
        if step_seconds is None or not steps:
            return None
        epochs_done = steps / self._steps_per_epoch
        usual = sum(self._evaluations) / max(1.0, round(epochs_done)) if self._evaluations else 0.0
        return max(0.0, self._epochs - epochs_done) * (self._steps_per_epoch * step_seconds + usual)

    def standing(self, steps: int, step_seconds: float | None) -> TrainingProgress:
        return TrainingProgress(
            epoch=self._epoch + 1,
            epochs=self._epochs,
            steps=self._epochs * self._steps_per_epoch,
            evaluating=self._evaluating is not None,
            loss=self._loss,
            scores=self._scores,
            left=self._left(steps, step_seconds),
            seen=tuple(self._seen),
        )


class RunDisplay(Protocol):
    """What a run tells while it goes on."""

    def trial_began(self, trial: PlannedTrial, number: int, total: int, seconds_left: float | None) -> None:
        return None

    def progress(self, steps: int, rate: float | None, training: TrainingProgress | None = None) -> None:
        return None

    def trial_ended(self, trial: PlannedTrial, record: TrialRecord) -> None:
        return None

    def note(self, text: str) -> None:
        return None


class NoDisplay(RunDisplay):
    """Where nobody watches."""
