"""What is known of a step in the end: every table, page and file of `trainmark explain` is made of this.

Times of classes and idle causes are whole nanoseconds over all profiled steps: classes alone, overlap and
idle add up to `total`, exactly. Nothing here depends on how it was profiled.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Kernel:
    """One kernel (or operator) of a class, all its launches together."""

    name: str
    nanoseconds: int
    launches: int


@dataclass(frozen=True)
class ClassTime:
    """One kernel class. `alone` is when nothing of another class ran; `busy` counts overlapped time too.

    `flop` and `bytes` are of all profiled steps, None where unknown; `floor` is the least time for them by
    the measured peaks, in nanoseconds, and `bound` by which of them ("arithmetic" or "memory").
    """

    name: str
    alone: int
    busy: int
    launches: int
    flop: float | None = None
    bytes: float | None = None
    floor: int | None = None
    bound: str | None = None
    kernels: tuple[Kernel, ...] = ()


@dataclass(frozen=True)
class ModuleTime:
    """One module of the model, by its path or type, forward and backward."""

    name: str
    forward: int
    backward: int
    launches: int


@dataclass(frozen=True)
class Overlap:
    """Time in which several classes ran at once."""

    classes: tuple[str, ...]
    nanoseconds: int


@dataclass(frozen=True)
class IdleTime:
    """Time in which the device did nothing, for one cause; `evidence` names calls, lines and counts."""

    cause: str
    nanoseconds: int
    gaps: int
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True)
class Agreement:
    """The profiled step against the steps timed without the profiler, in seconds.

    Where `refusal` is not None, no share is given, and it says why. `corrected` says that gaps between
    kernels, which tracing widens, were reduced to what the step timed without the profiler leaves for them.
    """

    profiled: float
    measured: float | None
    refusal: str | None = None
    corrected: bool = False

    @property
    def difference(self) -> float | None:
        return self.profiled / self.measured - 1 if self.measured else None


@dataclass(frozen=True)
class MeasuredPeaks:
    """What the device does at best, measured: FLOP/s, bytes/s, and bytes/s of the ranks' slowest link."""

    flops: float | None = None
    bandwidth: float | None = None
    link: float | None = None


@dataclass(frozen=True)
class Verified:
    """What came of a change when it was made: seconds a step, with its interval."""

    seconds: float
    low: float
    high: float
    trials: int


@dataclass(frozen=True)
class WhatIf:
    """A change and the step it would give, in seconds, with its interval and what that rests on.

    `how` is a line to type or to write, else what to do in words; `why` is the arithmetic in one sentence.
    With `waits_for_host` the device still waits for launches in it, and the host sets its time.
    """

    name: str
    title: str
    seconds: float
    low: float
    high: float
    how: str
    why: str
    basis: str
    verified: Verified | None = None
    is_line: bool = True
    waits_for_host: bool = False


@dataclass(frozen=True)
class Advice:
    """One thing to do: what it would give in percent of the throughput, and `how` as in WhatIf."""

    cause: str
    sentence: str
    gain: float
    low: float
    high: float
    how: str
    is_line: bool = True


@dataclass(frozen=True)
class RankTime:
    """One rank, in seconds a step; `late` is how long the others waited for it."""

    rank: int
    node: str | None
    step: float
    compute: float
    exposed: float
    hidden: float
    idle: float
    late: float


@dataclass(frozen=True)
class CollectiveBucket:
    """One collective call of the step: its bytes, time, the part not hidden, and bytes/s over the wire."""

    name: str
    bytes: int | None
    seconds: float
    exposed: float
    bandwidth: float | None


@dataclass(frozen=True)
class MemoryPart:
    """One holder of memory at the peak: weights, gradients, optimizer, activations, fragmentation."""

    kind: str
    bytes: int
    name: str | None = None
    freed: str | None = None  # what frees it, with the bytes


@dataclass(frozen=True)
class Memory:
    peak: int
    reserved: int | None
    parts: tuple[MemoryPart, ...]
    suggestions: tuple[str, ...] = ()


@dataclass(frozen=True)
class TimelineSpan:
    """One span to draw: `lane` is a stream or thread, times are nanoseconds from the first step's start."""

    lane: str
    name: str
    kernel_class: str
    start: int
    end: int


@dataclass(frozen=True)
class Timeline:
    steps: tuple[tuple[int, int], ...] = ()
    spans: tuple[TimelineSpan, ...] = ()
    thinned: int = 0  # spans too short to draw, left out


@dataclass(frozen=True)
class ExplainedSubject:
    """What was explained, for the first line."""

    title: str
    device: str | None = None
    framework: str | None = None
    samples: float | None = None  # of a step of all ranks
    unit: str = "samples"
    world_size: int = 1
    kind: str | None = None  # of the device: cuda or cpu


@dataclass(frozen=True)
class Explanation:
    """`doubts` say why not to rely on the measured steps, and `measured_rate` is what these gave."""

    subject: ExplainedSubject
    steps: int
    total: int
    agreement: Agreement
    peaks: MeasuredPeaks = MeasuredPeaks()
    classes: tuple[ClassTime, ...] = ()
    overlaps: tuple[Overlap, ...] = ()
    idle: tuple[IdleTime, ...] = ()
    modules: tuple[ModuleTime, ...] = ()
    what_ifs: tuple[WhatIf, ...] = ()
    advice: tuple[Advice, ...] = ()
    ranks: tuple[RankTime, ...] = ()
    buckets: tuple[CollectiveBucket, ...] = ()
    memory: Memory | None = None
    timeline: Timeline = Timeline()
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    measured_rate: float | None = None
    overhead: float | None = None  # of profiling, as a share of a step
    facts: dict[str, str] = field(default_factory=dict)

    @property
    def idle_nanoseconds(self) -> int:
        return sum(idle.nanoseconds for idle in self.idle)

    @property
    def step_seconds(self) -> float:
        """The step that shares are of: timed without the profiler where that is known."""
        return self.agreement.measured or self.agreement.profiled
