"""The numbers of one trial and of one result, as they are kept and shown. Data only, no arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from trainmark.base.typed_json import ANY_FLOAT, flattened
from trainmark.measure.doubts import Doubt
from trainmark.measure.key import Key
from trainmark.metric import Metric, Scores


@dataclass(frozen=True)
class Interval:
    """An interval and the confidence it really carries (0.9375 for the range of five trials)."""

    low: float
    high: float
    confidence: float

    def mapped(self, change: Callable[[float], float]) -> Interval:
        """Return the interval of an increasing function of what this one is of."""
        return Interval(change(self.low), change(self.high), self.confidence)


@dataclass(frozen=True)
class Ratio:
    """A quotient of two figures; the interval is None where the trials cannot carry one."""

    value: float
    interval: Interval | None

    def mapped(self, change: Callable[[float], float]) -> Ratio:
        return Ratio(change(self.value), self.interval and self.interval.mapped(change))


# Of a figure to itself.
ONE = Ratio(1.0, Interval(1.0, 1.0, 1.0))


class WindowVerdict(str, Enum):
    """How the step times of a trial came to rest."""

    SETTLED = "settled"
    NEVER_SETTLED = "never-settled"
    TOO_SHORT = "too-short"


@dataclass(frozen=True)
class Window:
    """Steps `first` ≤ i < `stop` (0-based) are the figure's; what lies before them is warm-up."""

    first: int
    stop: int
    verdict: WindowVerdict

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


MEASURED, KNOWN, WRITTEN_IN = "measured", "known", "written-in"


@dataclass(frozen=True)
class Utilisation:
    """FLOP/s over the peak of all devices.

    `source` says where the peak is from: MEASURED (a matrix product at a trial's end), KNOWN, or WRITTEN_IN
    to the code whose convention it is. `flops_per_sample` is None in figures of earlier versions.
    """

    value: float
    peak_flops: float
    source: str
    flops_per_sample: float | None = None


@dataclass(frozen=True)
class ConventionUtilisation:
    """The MFU that another code would give the same run, by its own count of FLOP."""

    name: str
    utilisation: Utilisation


@dataclass(frozen=True)
class TimeShares:
    """Where the wall time of the window went; the four add up to one.

    `communication` is exposed: time in which a rank did nothing but wait for the others. `data` is the
    waiting for data that a step could not hide, `other` what nobody accounts for.
    """

    compute: float
    communication: float
    data: float
    other: float


@dataclass(frozen=True)
class RankTimes:
    """One rank of a trial; `own_seconds` is the median of its steps without the waiting for others."""

    rank: int
    node: str | None
    shares: TimeShares
    own_seconds: float


@dataclass(frozen=True)
class StepParts:
    """What an average step is made of, as shares of its time that add up to one.

    `compute`, `data` and `other` are the typical rank's own. `straggling` is how much longer the slowest rank
    of each step took than the typical one, `communication` what then was left: waiting that no rank escapes.
    """

    compute: float
    data: float
    other: float
    straggling: float
    communication: float


@dataclass(frozen=True)
class Breakdown:
    """Where the time of a trial went: over all ranks, by the parts of a step, and rank by rank."""

    shares: TimeShares
    parts: StepParts
    ranks: tuple[RankTimes, ...]


@dataclass(frozen=True)
class Straggler:
    """A rank that holds the others back, or with `rank` None a whole node.

    `own_seconds` and `others_seconds` are its own time in a step and that of the others; `cost` is the share
    of the throughput that is lost to it, `lost` the same in samples a second.
    """

    rank: int | None
    node: str | None
    own_seconds: float
    others_seconds: float
    cost: float
    lost: float


@dataclass(frozen=True)
class Epoch:
    """One whole epoch, counted from 0; `begin` and `end` are seconds since the run started.

    `seconds` is the training alone: without checkpoints, evaluations and what a kill cost.
    """

    epoch: int
    steps: int
    begin: float
    end: float
    seconds: float
    samples: float


@dataclass(frozen=True)
class Evaluation:
    """One whole evaluation of so many samples; `step` counts the steps trained before it.

    Times are as those of an epoch; in JSON each score has a name of its own.
    """

    epoch: int
    step: int
    begin: float
    end: float
    scores: Scores = field(metadata=flattened())
    samples: int | None = None


@dataclass(frozen=True)
class Finish:
    """How a training came to its target; all times in seconds.

    `reached` is None where there is no target, or where the stream ends before it was decided. `time2train`
    runs from the first rank's start, right before data was touched, to the end of the evaluation that
    crossed the target, and never pauses; `airank_seconds` is the same from the start of the first process,
    as AI-Rank counts. `lost_seconds` is what kills cost: from the last step that counts to the next start.

    Rates are in samples a second of all ranks: `train_rate` over the epochs after the first without anything
    that stood between them, `whole_rate` over everything, `airank_rate` by AI-Rank's rule: the samples after
    the first epoch over all the time after it.

    The first of the `metrics` ranks evaluations; `best` has the scores of the best one, in JSON as
    `best_NAME`.
    """

    target: str | None
    reached: bool | None
    time2train: float | None
    airank_seconds: float | None
    epochs_to_target: int | None
    best: Scores = field(metadata=flattened("best_"))
    best_epoch: int | None
    train_rate: float | None
    first_epoch_rate: float | None
    whole_rate: float | None
    airank_rate: float | None
    seconds: float
    startup_seconds: float | None
    evaluation_seconds: float
    checkpoint_seconds: float
    checkpoints: int
    resumed: int
    lost_seconds: float
    training_samples: int | None = None
    validation_samples: int | None = None
    metrics: tuple[Metric, ...] = ()
    epochs: tuple[Epoch, ...] = ()
    evaluations: tuple[Evaluation, ...] = ()

    @property
    def crossing(self) -> Evaluation | None:
        """The evaluation that crossed the target."""
        if self.epochs_to_target is None:
            return None
        return next(each for each in self.evaluations if each.epoch + 1 == self.epochs_to_target)

    @property
    def metric(self) -> Metric | None:
        """The metric that ranks evaluations."""
        return self.metrics[0] if self.metrics else None


@dataclass(frozen=True)
class FinishResult:
    """The finish over repeats with different seeds.

    A trial that did not reach the target counts as longer than any that did: where that is half of them,
    there is no median. `best` (in JSON `best_NAME`) and `best_epoch` are those of the best trial; `lowest`
    and `highest` are the bounds of the trials' bests in the first metric. `time_speedup` is against one
    device, by the times to train; the one by throughput is the result's own.
    """

    target: str | None
    reached: int
    decided: int
    time2train: float | None
    interval: Interval | None
    times: tuple[float, ...]
    airank_seconds: float | None
    epochs_to_target: int | None
    best: Scores = field(metadata=flattened("best_"))
    best_epoch: int | None
    lowest: Scores = field(metadata=flattened("lowest_"))
    highest: Scores = field(metadata=flattened("highest_"))
    train_rate: float | None
    whole_rate: float | None
    airank_rate: float | None
    evaluation_seconds: float
    checkpoint_seconds: float
    resumed: int
    time_speedup: Ratio | None = None
    metrics: tuple[Metric, ...] = ()


@dataclass(frozen=True)
class Pauses:
    """What was left out between and amid the steps of a window: of one kind, how often and how long."""

    kind: str
    count: int
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Figure:
    """What both a trial and a result say; `throughput` counts all ranks, in `unit` a second.

    `utilisation` is MFU, by the model's FLOP; `hardware_utilisation` is HFU, which adds what is computed
    twice; `conventions` are what other codes would call MFU. `memory_share` is the time that a step's fewest
    bytes would take at the bandwidth of a copy, which is `peak_bandwidth` of all ranks together, ÷ its own.

    `memory_bytes` is what the program says, else the most that its processes allocated on one device;
    `host_memory_bytes` their peak RSS together on one host. `step_source` and `sample_source` say
    how steps were seen and samples counted, where the events tell. `settling_steps` is where the steady
    window would begin if no step were dropped unseen, or None where it does not settle. `breakdown` is None
    where the ranks do not tell working from waiting.
    """

    throughput: float
    interval: Interval | None
    unit: str
    step_times: StepTimes
    first_step_seconds: float
    memory_bytes: int | None = None
    host_memory_bytes: int | None = None
    data_wait_share: float | None = None
    samples_per_joule: float | None = None
    utilisation: Utilisation | None = None
    hardware_utilisation: Utilisation | None = None
    conventions: tuple[ConventionUtilisation, ...] = ()
    memory_share: float | None = None
    peak_bandwidth: float | None = None
    settling_steps: int | None = None
    breakdown: Breakdown | None = None
    stragglers: tuple[Straggler, ...] = ()
    step_source: str | None = None
    sample_source: str | None = None
    pauses: tuple[Pauses, ...] = ()
    doubts: tuple[Doubt, ...] = ()

    @property
    def joules_per_sample(self) -> float | None:
        return 1 / self.samples_per_joule if self.samples_per_joule else None


@dataclass(frozen=True, kw_only=True)
class TrialFigure(Figure):
    """All that one trial says; `finish` is None where nothing was trained to an end."""

    world_size: int
    window: Window
    seconds: float
    samples: float
    loss_first: float | None = field(default=None, metadata=ANY_FLOAT)
    loss_last: float | None = field(default=None, metadata=ANY_FLOAT)
    joules: float | None = None
    finish: Finish | None = None


@dataclass(frozen=True, kw_only=True)
class Result(Figure):
    """The median over the `n` trials of one case, with everything that qualifies it.

    `speedup` and `efficiency` are None where there is no one-device baseline with the same key;
    `settling_steps` is the median over the trials that settled, None where none did. `breakdown` is that of
    the middle trial, `pauses` are those of the first; `stragglers` are those of half of the trials at least,
    each with its median cost. `of_synthetic` is the throughput ÷ that of the same case on synthetic data,
    where the run has both.
    """

    key: Key
    n: int
    trials: tuple[float, ...]
    speedup: Ratio | None = None
    efficiency: Ratio | None = None
    warmup_steps: int
    finish: FinishResult | None = None
    of_synthetic: Ratio | None = None
