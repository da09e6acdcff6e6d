"""The numbers of one trial and of one result, as they are kept and shown. Data only, no arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from trainmark.measure.doubt import Doubt
from trainmark.measure.key import Key


@dataclass(frozen=True)
class Interval:
    """An interval and the confidence it really carries (0.9375 for the range of five trials)."""

    low: float
    high: float
    confidence: float


@dataclass(frozen=True)
class Ratio:
    """A quotient of two figures; the interval is None where the trials cannot carry one."""

    value: float
    interval: Interval | None


class Verdict(str, Enum):
    """How the step times of a trial came to rest."""

    SETTLED = "settled"
    NEVER_SETTLED = "never-settled"
    TOO_SHORT = "too-short"


@dataclass(frozen=True)
class Window:
    """Steps `first` ≤ i < `stop` (0-based) are the figure's; what lies before them is warm-up."""

    first: int
    stop: int
    verdict: Verdict

    @property
    def steps(self) -> int:
        return self.stop - self.first


@dataclass(frozen=True)
class StepTimes:
    """Step times inside the window, in seconds."""

    mean: float
    p50: float
    p90: float
    p99: float
    longest: float


@dataclass(frozen=True)
class Utilisation:
    """Model FLOP/s over the peak; `source` is `measured` (a matrix product in the trial) or `known`."""

    value: float
    peak_flops: float
    source: str


@dataclass(frozen=True)
class TrialFigure:
    """All that one trial says; `throughput` counts all ranks, in `unit` a second.

    `settling_steps` is where the steady window would begin if no step were dropped unseen, or None where
    the trial does not settle.
    """

    throughput: float
    interval: Interval | None
    unit: str
    world_size: int
    window: Window
    step_times: StepTimes
    first_step_seconds: float
    seconds: float
    samples: float
    memory_bytes: int | None = None
    data_wait_share: float | None = None
    loss_first: float | None = None
    loss_last: float | None = None
    joules: float | None = None
    samples_per_joule: float | None = None
    utilisation: Utilisation | None = None
    doubts: tuple[Doubt, ...] = ()
    settling_steps: int | None = None


@dataclass(frozen=True)
class Result:
    """The median over the trials of one case, with everything that qualifies it.

    `speedup` and `efficiency` are None where there is no one-device baseline with the same key;
    `settling_steps` is the median over the trials that settled, None where none did.
    """

    key: Key
    throughput: float
    interval: Interval | None
    n: int
    unit: str
    trials: tuple[float, ...]
    speedup: Ratio | None
    efficiency: Ratio | None
    step_times: StepTimes
    first_step_seconds: float
    warmup_steps: int
    memory_bytes: int | None
    data_wait_share: float | None
    samples_per_joule: float | None
    utilisation: Utilisation | None
    doubts: tuple[Doubt, ...]
    settling_steps: int | None = None
