"""One run as someone's log tells it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from trainmark.events import Event, Mark, RunEnd, RunStart, Scope, Step
from trainmark.published.readers.format import Clock, Format, Kind, Setting
from trainmark.published.readers.steps import Column, Steps, over_midnights


@dataclass
class LoggedRun:
    """`settings` holds what the log says of the run, and no guess; `number` counts the runs in a file.

    `conflicting` names the settings of which the log has a second, different value.
    """

    source: str
    format: Format
    number: int = 1
    settings: dict[str, Any] = field(default_factory=dict)
    setting_of: dict[str, Setting] = field(default_factory=dict)
    conflicting: set[str] = field(default_factory=set)
    steps: Steps = field(default_factory=Steps)
    evaluations: list[dict[str, float]] = field(default_factory=list)
    summary: dict[str, float] = field(default_factory=dict)
    damaged_lines: int = 0

    @property
    def world_size(self) -> int | None:
        """As the log says, outright or as nodes × devices a node."""
        settings = self.settings
        if (world := settings.get("world_size")) is not None:
            return int(world)
        known = "nodes" in settings and "devices_per_node" in settings
        return int(settings["nodes"] * settings["devices_per_node"]) if known else None

    def columns(self) -> dict[str, Column]:
        """What the progress lines say, one array a name."""
        named = ((name, self.steps[name]) for name in self.steps.columns)
        columns = {name: column for name, column in named if column is not None}
        if self.format.clock is Clock.TIME_OF_DAY and "wall" in columns:
            columns["wall"] = over_midnights(columns["wall"], columns.get("rank"))
        return columns

    def facts(self) -> dict[str, Any]:
        """What the columns mean, in the words of `measure.trial.log.times.LogFacts`."""
        rate, settings = self.format.rate, self.settings
        return {
            "unit": settings.get("unit", rate.unit),
            "scope": Scope(settings.get("scope", rate.scope)),
            "cumulative": rate.kind is Kind.CUMULATIVE,
            "every_rank": rate.every_rank,
            "world_size": self.world_size,
            "batch_per_device": settings.get("batch_per_device"),
            "global_batch": self._global_batch(),
            "samples_per_step": settings.get("samples_per_step"),
            "steps_a_line": self.format.steps_a_line,
            "own_rate": self.summary.get("rate"),
            "whole_rate": settings.get("whole_rate"),
            "ended": settings.get("ended"),
            "disordered": settings.get("disordered"),
            "accumulation_untold": self._accumulates and "accumulation" not in settings,
            "conflicting": tuple(sorted(self.conflicting)),
        }

    def _global_batch(self) -> float | None:
        """Samples that all devices together take in a step, where the log says, accumulated ones included."""
        settings = self.settings
        if "global_batch" in settings:
            return float(settings["global_batch"])
        if "accumulation" in settings and "batch_per_device" in settings and self.world_size is not None:
            return float(settings["batch_per_device"] * settings["accumulation"] * self.world_size)
        return None

    @property
    def _accumulates(self) -> bool:
        """Whether a step of this format is one of several batches."""
        return any(setting.name == "accumulation" for setting in self.format.settings)

    @property
    def top1(self) -> float | None:
        """The last evaluation's, as printed; what training itself prints is no accuracy."""
        evaluated = [facts["top1"] for facts in self.evaluations if "top1" in facts]
        return evaluated[-1] if evaluated else self.summary.get("top1")

    def events(self) -> Iterator[Event]:
        """The same run as the one event stream; times as printed, samples where the batch is known."""
        rate = self.format.rate
        yield RunStart(
            rank=0,
            world_size=self.world_size or 1,
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
