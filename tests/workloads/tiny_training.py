"""A training of three small tensors, for tests of checkpoints: its whole state follows from one number.

Without a framework, so that a process that saves and restores it is forked in milliseconds.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from trainmark.workloads.common import checkpoint
from trainmark.workloads.resnet50.shared import program, tensors

SHAPES = {"stem.norm.mean": (3,), "classifier.weight": (40, 60), "classifier.bias": (40,)}


class TinySpec(program.ResNet50Spec):
    shapes = staticmethod(lambda options: SHAPES)


class Meeting:
    """Where the ranks of one process, a thread each, add up their numbers."""

    def __init__(self, ranks: int) -> None:
        self.barrier = threading.Barrier(ranks, timeout=60)
        self.given: dict[int, list[float]] = {}

    def total(self, rank: int, numbers: list[float]) -> list[float]:
        self.given[rank] = numbers
        self.barrier.wait()
        added = [sum(column) for column in zip(*self.given.values(), strict=True)]
        self.barrier.wait()
        return added


class TinyTraining:
    def __init__(self, rank: int = 0, meeting: Meeting | None = None) -> None:
        self.rank, self.meeting, self.value = rank, meeting, 0

    def tensors(self) -> dict[str, Any]:
        own = self.value + self.rank / 4
        return {
            name: np.full(shape, own if tensors.is_statistic(name) else self.value, np.float32)
            for name, shape in SHAPES.items()
        }

    def momenta(self) -> dict[str, Any]:
        return {"classifier.weight": np.full(SHAPES["classifier.weight"], -self.value, np.float32)}

    def rest(self) -> dict[str, float]:
        return {"scale": float(self.value)}

    def load(self, values, momenta=None, rest=None) -> None:
        """Take the state over; AssertionError where it is not of one moment."""
        self.value = int(values["classifier.bias"][0])
        for name, expected in self.tensors().items():
            assert np.array_equal(values[name], expected), name
        assert np.array_equal(momenta["classifier.weight"], self.momenta()["classifier.weight"])
        assert rest == self.rest()

    def total(self, numbers: list[float]) -> list[float]:
        return self.meeting.total(self.rank, numbers) if self.meeting else numbers


def checkpoints(folder: Path, rank: int = 0, meeting: Meeting | None = None, ranks: int = 1, **options: Any):
    opt = {"checkpoints": str(folder), "checkpoints_kept": 2, "rank": rank, "world_size": ranks, "seed": 0}
    opt |= {"batch": 4, "image_size": 32, "precision": "fp32", "loader": "host", "recipe_name": "ngc-90"}
    asked = SimpleNamespace(**(opt | options))
    return checkpoint.Checkpoints(TinySpec(), asked, TinyTraining(rank, meeting), "tiny")


def on_ranks(folder: Path, ranks: int, work: Callable[[Any], Any]) -> list[Any]:
    """Return what `work` gives for the checkpoints of each rank; the first exception of one is raised."""
    meeting = Meeting(ranks) if ranks > 1 else None
    answers: list[Any] = [None] * ranks
    errors: list[BaseException] = []

    def one(rank: int) -> None:
        try:
            answers[rank] = work(checkpoints(folder, rank, meeting, ranks))
        except BaseException as error:  # noqa: BLE001 - raised again where the threads are joined
            errors.append(error)

    threads = [threading.Thread(target=one, args=(rank,)) for rank in range(1, ranks)]
    for thread in threads:
        thread.start()
    one(0)
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return answers
