"""What a report is made from: one plain value that the store fills and every layout reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trainmark.logs.ledger import Standing
from trainmark.measure.ab import BaselineContrast
from trainmark.measure.cost import Price
from trainmark.measure.fabric import FabricMeasurement
from trainmark.measure.figure import Evaluation, Result
from trainmark.measure.key import Key
from trainmark.measure.reference_rate import ReferenceRate
from trainmark.metric import Metric
from trainmark.report.conformance import Conformance
from trainmark.store.files import Damage


@dataclass(frozen=True)
class TrialLine:
    """One trial as a report shows it; `detail` is one line that says why it failed, or empty."""

    case: str
    repeat: int
    outcome: str
    throughput: float | None
    low: float | None
    high: float | None
    warmup_steps: int | None
    retries: int
    detail: str
    command: str


@dataclass(frozen=True)
class StepTrace:
    """Step times of a case's median trial, thinned; its window is `window_first` ≤ step < `window_stop`."""

    case: str
    seconds: tuple[float, ...]
    steps: tuple[int, ...]
    window_first: int
    window_stop: int


@dataclass(frozen=True)
class Curve:
    """What one trial of a training by epochs learnt; `seconds` count from the start of the run.

    The losses are means over stretches of steps; `losses[i]` is that of the stretch that ends at `steps[i]`.
    """

    case: str
    repeat: int
    seed: int | None
    target: float | None
    """The value of the first metric to reach, where there is one."""
    steps: tuple[int, ...]
    seconds: tuple[float, ...]
    losses: tuple[float, ...]
    evaluations: tuple[Evaluation, ...]
    crossing: Evaluation | None
    metrics: tuple[Metric, ...] = ()
    floor: float | None = None
    """The loss below which no model comes, where the data have a known entropy."""


@dataclass(frozen=True)
class SampleSeries:
    """What one device said of itself during that same trial; `seconds` count from the trial's start."""

    case: str
    device: str
    seconds: tuple[float, ...]
    utilisation: tuple[float | None, ...]
    power_watts: tuple[float | None, ...]
    temperature_c: tuple[float | None, ...]
    clock_mhz: tuple[float | None, ...]
    memory_bytes: tuple[float | None, ...]


@dataclass(frozen=True)
class Document:
    """A whole report; `environment` is nested plain JSON in named sections, with None for "not found".

    `published` says of a result where it stands among the published ones (None: nothing is comparable),
    `standings` where among those of its own framework; `conformance` is that of its framework; `light` has
    the devices' reference rates.
    """

    name: str
    title: str
    about: str
    created: str
    suite: str
    version: str
    command: str
    results: tuple[Result, ...]
    trials: tuple[TrialLine, ...]
    skipped: tuple[tuple[str, str], ...]
    traces: tuple[StepTrace, ...]
    samples: tuple[SampleSeries, ...]
    environment: dict[str, Any]
    published: Mapping[Key, Standing | None] = field(default_factory=dict)
    standings: Mapping[Key, Standing] = field(default_factory=dict)
    conformance: Mapping[Key, Conformance] = field(default_factory=dict)
    fabric: FabricMeasurement | None = None
    curves: tuple[Curve, ...] = ()
    light: tuple[ReferenceRate, ...] = ()
    damaged: tuple[Damage, ...] = ()
    """Files of the run that could not be used."""
    keys: Mapping[str, Key] = field(default_factory=dict)
    """The key of each case that has a figure, by the name of its folder."""
    contrasts: tuple[BaselineContrast, ...] = ()
    price: Price | None = None
    """What the cost of each result is counted with."""

    @property
    def left_out(self) -> list[tuple[str, str, str]]:
        """What has no trial to show: its name, an outcome, and the reason."""
        skipped = [(case, "skipped", reason) for case, reason in self.skipped]
        return skipped + [(damage.path, "damaged", damage.sentence) for damage in self.damaged]
