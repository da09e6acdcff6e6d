"""Trainings to a target whose truth is known, as events: the clock is a cursor that everything moves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from trainmark.events import Event, Mark, RunEnd, RunStart, Step
from trainmark.metric import declaration
from trainmark.workloads import registry

METRICS = registry.find("resnet50").workload.metrics
STARTED = 1000.0
WALL_OFFSET = 1_700_000_000.0


@dataclass
class Training:
    """One rank's part of a training; times in seconds, accuracies by epoch."""

    top1: Sequence[float] = (0.2, 0.4, 0.6)
    target: float | None = 0.5
    steps_per_epoch: int = 10
    step_seconds: float = 0.5
    first_epoch_factor: float = 2.0
    evaluation_seconds: float = 3.0
    checkpoint_seconds: float = 1.0
    checkpoint_steps: int | None = None
    batch: int = 32
    ranks: int = 1
    rank: int = 0
    late: float = 0.0
    """How much later than rank 0 this rank starts and begins its epochs."""
    now: float = STARTED
    shift: float = 0.0
    """Of the monotonic clock, as after a boot."""
    facts: dict[str, Any] = field(default_factory=dict)
    step_facts: dict[str, Any] = field(default_factory=dict)

    def start(self, **facts: Any) -> RunStart:
        all_facts = {
            "epochs": len(self.top1),
            "steps_per_epoch": self.steps_per_epoch,
            "training_samples": self.steps_per_epoch * self.batch * self.ranks,
            "validation_samples": 500,
            "recipe": "ai-rank",
            "metrics": declaration(METRICS),
            "process_started": self.now + self.late + WALL_OFFSET - 7,
            **({"target": {"top1": self.target}} if self.target is not None else {}),
            **self.facts,
            **facts,
        }
        at = self.now + self.late
        return RunStart(self.rank, self.ranks, at + self.shift, at + WALL_OFFSET, "images", facts=all_facts)

    def mark(self, kind: str, late: float = 0.0, **facts: Any) -> Mark:
        at = self.now + late
        return Mark(kind, self.rank, at + self.shift, at + WALL_OFFSET, facts)

    def step(self, number: int) -> Step:
        slow = self.first_epoch_factor if number < self.steps_per_epoch else 1.0
        self.now += self.step_seconds * slow
        loss = 7.0 / (1 + number / 10)
        at = self.now
        return Step(self.rank, number, at + self.shift, at + WALL_OFFSET, self.batch, loss, **self.step_facts)

    def events(self, first: int = 0, stop: int | None = None) -> Iterator[Event]:
        """From step `first` up to but not including `stop`; the end only where nothing is left."""
        for epoch in range(first // self.steps_per_epoch, len(self.top1)):
            yield self.mark("epoch", self.late, epoch=epoch, state="begin")
            for number in range(epoch * self.steps_per_epoch, (epoch + 1) * self.steps_per_epoch):
                if number < first:
                    continue
                if number == stop:
                    return
                yield self.step(number)
                yield from self.checkpoint(number + 1, epoch)
            yield self.mark("epoch", epoch=epoch, state="end")
            yield from self.evaluation(epoch)
            if self.target is not None and self.top1[epoch] >= self.target:
                break
        reached = self.target is None or self.top1[epoch] >= self.target
        yield RunEnd(self.rank, self.now + self.shift, self.now + WALL_OFFSET, {"reached": reached})

    def checkpoint(self, step: int, epoch: int) -> Iterator[Mark]:
        if self.checkpoint_steps and step % self.checkpoint_steps == 0:
            self.now += self.checkpoint_seconds
            if self.rank == 0:
                took = self.checkpoint_seconds
                yield self.mark("checkpoint", step=step, epoch=epoch, seconds=took, bytes=10**8)

    def evaluation(self, epoch: int) -> Iterator[Mark]:
        yield self.mark("eval", epoch=epoch, state="begin")
        self.now += self.evaluation_seconds
        top1 = self.top1[epoch]
        facts = {"top1": top1, "top5": min(1.0, top1 + 0.3), "correct1": int(500 * top1), "samples": 500}
        yield self.mark("eval", epoch=epoch, state="end", **facts)


def training(ranks: int = 1, late: float = 0.0, **changes: Any) -> list[Event]:
    """All ranks, rank after rank; each but the first is `late`."""
    events: list[Event] = []
    for rank in range(ranks):
        own = Training(rank=rank, ranks=ranks, late=late if rank else 0.0, **changes)
        events += [own.start(), *own.events()]
    return events


def killed(stop: int, resumed: int, down: float = 60.0, ranks: int = 1, **changes: Any) -> list[Event]:
    """Killed before step `stop`, then taken up again at step `resumed`, `down` seconds later."""
    boot = changes.pop("boot", 0.0)
    events: list[Event] = []
    for rank in range(ranks):
        own = Training(rank=rank, ranks=ranks, **changes)
        events += [own.start(), *own.events(stop=stop)]
        own.now += down
        own.shift += boot
        events += [own.start(resumed_step=resumed), *own.events(first=resumed)]
    return events
