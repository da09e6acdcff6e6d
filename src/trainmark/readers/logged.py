"""One run as someone's log tells it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trainmark.events import Event, Mark, RunEnd, RunStart, Step
from trainmark.readers.format import Format
from trainmark.readers.steps import Steps


@dataclass
class LoggedRun:
    """`settings` holds what the log says of the run, and no guess; `number` counts the runs in a file."""

    source: str
    format: Format
    number: int = 1
    settings: dict[str, Any] = field(default_factory=dict)
    steps: Steps = field(default_factory=Steps)
    evaluations: list[dict[str, float]] = field(default_factory=list)
    summary: dict[str, float] = field(default_factory=dict)
    damaged_lines: int = 0

    def events(self) -> Iterator[Event]:
        """The same run as the one event stream; times as printed, samples where the batch is known."""
        rate = self.format.rate
        yield RunStart(
            rank=0,
            world_size=int(self.settings.get("world_size") or 1),
            mono=None,
            wall=None,
            unit=rate.unit,
            scope=rate.scope,
            facts={**self.settings, "format": self.format.name, "rate_kind": rate.kind.value},
        )
        columns = {name: self.steps[name] for name in self.steps.columns}

        def at(name: str, index: int) -> float | None:
            column = columns.get(name)
            return None if column is None or np.isnan(column[index]) else float(column[index])

        for index in range(len(self.steps)):
            number = at("step", index)
            yield Step(
                rank=int(at("rank", index) or 0),
                step=index if number is None else int(number),
                mono=None,
                wall=at("wall", index),
                samples=at("samples", index) or self.settings.get("batch_per_device"),
                loss=at("loss", index),
                lr=at("lr", index),
            )
        for facts in self.evaluations:
            yield Mark("eval", 0, None, None, facts)
        yield RunEnd(0, None, None, dict(self.summary))
