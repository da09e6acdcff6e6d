"""What predictions are made from: one step by its parts, how it trains, and what host and device can do."""

from __future__ import annotations

import re
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from trainmark.explain.breakdown import precision_of
from trainmark.explain.explanation import ClassTime, Explanation, MeasuredPeaks, Memory
from trainmark.explain.profile import HostKind, Profile

NANOSECONDS = 1e9
NO_PEAKS = MeasuredPeaks()
COMMUNICATION, OPTIMIZER = "communication", "optimiser"
WEIGHT_BYTES = 4
# What reads and writes tensors without reusing what it read: its time follows its bytes.
MEMORY_CLASSES = ("normalisation", "elementwise", "reduction", "copy")
NO_FRAMEWORK = "CUDA"  # what a profile names where the kernels of a program are all that is known
LAUNCH, SYNCHRONIZATION, LOADER = "launch", "synchronisation", "loader"


@dataclass(frozen=True)
class TrainingSettings:
    """How the program trains, as far as it is known; of a user's own program nearly all is None.

    `command` is the line that runs it as it is, to which `--set` is appended; None for a user's program.
    `compiles_update`: its setting `compile` is for the update of the parameters too, not the model alone.
    """

    workload: str | None = None
    framework: str | None = None
    precision: str | None = None
    layout: str | None = None
    compiler: str | None = None
    cuda_graph: bool = False
    engine: str | None = None
    batch: int | None = None
    data: str | None = None
    workers: int | None = None
    optimizer: str | None = None
    compiles_update: bool = False
    world_size: int = 1
    command: str | None = None


@dataclass(frozen=True)
class StepPart:
    """One kernel class in one step, times in seconds; `alone` is while no other class ran."""

    name: str
    alone: float
    busy: float
    launches: float
    flop: float | None = None
    bytes: float | None = None
    floor: float | None = None
    bound: str | None = None
    layout_copies: float = 0.0  # seconds of kernels that only change a convolution's layout

    @property
    def layout_share(self) -> float:
        """Share of its time in kernels that only change a layout."""
        return min(1.0, self.layout_copies / self.busy) if self.busy else 0.0


@dataclass(frozen=True)
class DatasheetPeaks:
    """A device by its datasheet: FLOP/s of dense products by precision, and bytes/s of its memory."""

    title: str
    flops: Mapping[str, float]
    bandwidth: float | None = None


@dataclass(frozen=True)
class Situation:
    """One step of one rank: `parts`, `overlap` and `idle` add up to `step`, all in seconds.

    `gaps` counts the idle gaps of a step by cause. `peaks` are measured in the precision of the settings,
    `product_peaks` those measured in any precision; `datasheet` is this device's, `others` what it could be
    exchanged for. `host` is the time in which the host issues a step, `clock` the share of the highest clock
    at which the device ran, `cores` those of the host; `memory` is the peak, `fixed_memory` the part that
    does not grow with the batch.
    """

    step: float
    device: str
    parts: tuple[StepPart, ...] = ()
    overlap: float = 0.0
    idle: Mapping[str, float] = field(default_factory=dict)
    gaps: Mapping[str, float] = field(default_factory=dict)
    settings: TrainingSettings = TrainingSettings()
    peaks: MeasuredPeaks = NO_PEAKS
    product_peaks: Mapping[str, float] = field(default_factory=dict)
    datasheet: DatasheetPeaks | None = None
    others: tuple[DatasheetPeaks, ...] = ()
    parameters: int | None = None
    memory: int | None = None
    fixed_memory: int | None = None
    device_memory: int | None = None
    host: float | None = None
    clock: float | None = None
    cores: int | None = None

    def part(self, name: str) -> StepPart | None:
        return next((part for part in self.parts if part.name == name), None)

    def idle_for(self, cause: str) -> float:
        return self.idle.get(cause, 0.0)

    @property
    def launches(self) -> float:
        return sum(part.launches for part in self.parts)

    @property
    def compute(self) -> float:
        """Seconds in which the device did anything but communicate."""
        return sum(part.alone for part in self.parts if part.name != COMMUNICATION) + self.overlap

    @property
    def exposed(self) -> float:
        """Seconds of communication that nothing hides."""
        part = self.part(COMMUNICATION)
        return part.alone if part else 0.0

    @property
    def hidden(self) -> float:
        """Seconds of communication under other classes."""
        part = self.part(COMMUNICATION)
        return max(0.0, part.busy - part.alone) if part else 0.0

    @property
    def has_batch_norm(self) -> bool:
        """Whether norms follow convolutions rather than linear layers."""
        convolution, product = self.part("convolution"), self.part("matrix product")
        return convolution is not None and (product is None or convolution.launches > product.launches)

    def product_peak(self, precision: str) -> float | None:
        """FLOP/s of products in that precision: measured, else by the ratio of the datasheet's peaks.

        Where no precision was measured, all are the datasheet's.
        """
        precision = "fp16" if precision == "amp" else precision
        if known := self.product_peaks.get(precision):
            return known
        own = "fp16" if self.settings.precision == "amp" else self.settings.precision
        if self.peaks.flops and precision == own:
            return self.peaks.flops
        sheet = self.datasheet.flops if self.datasheet else {}
        if not self.peaks.flops and not self.product_peaks:
            return sheet.get(precision)
        if own is None or not self.peaks.flops or precision not in sheet or own not in sheet:
            return None
        return self.peaks.flops * sheet[precision] / sheet[own]


def situation_of(
    explanation: Explanation,
    settings: TrainingSettings,
    device: str,
    *,
    product_peaks: Mapping[str, float] | None = None,
    datasheet: DatasheetPeaks | None = None,
    others: tuple[DatasheetPeaks, ...] = (),
    parameters: int | None = None,
    device_memory: int | None = None,
    host: float | None = None,
    clock: float | None = None,
) -> Situation:
    """Return the situation of an explained step, its parts scaled to the step timed without the profiler."""
    scale = explanation.step_seconds / (explanation.total or 1)  # seconds a step per nanosecond of all steps
    counted = max(explanation.steps, 1)
    if settings.precision is None:
        settings = replace(settings, precision=precision_of(explanation.classes))
    memory = explanation.memory
    growing = sum(part.bytes for part in memory.parts if part.kind == "activations") if memory else 0
    parts = tuple(_part(time, scale, counted) for time in explanation.classes)
    waiting = sum(idle.nanoseconds for idle in explanation.idle if idle.cause == COMMUNICATION) * scale
    others_idle = [idle for idle in explanation.idle if idle.cause != COMMUNICATION]
    return Situation(
        step=explanation.step_seconds,
        device=device,
        parts=_with_waiting(parts, waiting) if waiting else parts,
        overlap=sum(overlap.nanoseconds for overlap in explanation.overlaps) * scale,
        idle={idle.cause: idle.nanoseconds * scale for idle in others_idle},
        gaps={idle.cause: idle.gaps / counted for idle in others_idle},
        settings=settings,
        peaks=explanation.peaks,
        product_peaks=product_peaks or {},
        datasheet=datasheet,
        others=others,
        parameters=parameters or _parameters(memory),
        memory=memory.peak if memory else None,
        fixed_memory=memory.peak - growing if memory and growing else None,
        device_memory=device_memory,
        host=host,
        clock=clock,
    )


def _parameters(memory: Memory | None) -> int | None:
    """Return the parameters of a program that declares none, by what its weights hold in float32."""
    weights = sum(part.bytes for part in memory.parts if part.kind == "weights") if memory else 0
    return weights // WEIGHT_BYTES or None


def _with_waiting(parts: tuple[StepPart, ...], seconds: float) -> tuple[StepPart, ...]:
    """Count the wait for a collective that runs beside the device, as gloo's does, as its exposed time."""
    own = next((part for part in parts if part.name == COMMUNICATION), StepPart(COMMUNICATION, 0.0, 0.0, 0.0))
    waited = replace(own, alone=own.alone + seconds, busy=own.busy + seconds)
    return (*(part for part in parts if part.name != COMMUNICATION), waited)


def _part(time: ClassTime, scale: float, steps: int) -> StepPart:
    return StepPart(
        name=time.name,
        alone=time.alone * scale,
        busy=time.busy * scale,
        launches=time.launches / steps,
        flop=None if time.flop is None else time.flop / steps,
        bytes=None if time.bytes is None else time.bytes / steps,
        floor=None if time.floor is None else time.floor / NANOSECONDS / steps,
        bound=time.bound,
        layout_copies=sum(kernel.nanoseconds for kernel in time.kernels if is_layout_copy(kernel.name))
        * scale,
    )


def is_layout_copy(kernel: str) -> bool:
    """Whether a kernel only changes a layout: cuDNN's before and after a convolution in NCHW."""
    name = kernel.lower()
    return any(word in name for word in ("nchwtonhwc", "nhwctonchw", "nchw_to_nhwc", "nhwc_to_nchw"))


STEP = re.compile(r"(trainmark_step|ProfilerStep)#\d+")
# Calls that wait for the device.
BLOCKING = re.compile(r"Synchronize|^(cuda|cu)Memcpy(?!.*Async)|EventQuery")
LAUNCHING = re.compile(r"Launch|MemcpyAsync|MemsetAsync")
# A launch takes a few microseconds; one that takes longer waits for room in the queue.
LONGEST_LAUNCH = 20_000  # ns


def host_seconds(profile: Profile) -> float | None:
    """Return the median over steps of the host's time without waiting for the device; None without marks.

    Profiling makes the host slower by a microsecond or two for each launch, so that this is a little high.
    """
    host = profile.host
    names = host.names
    steps = [index for index, name in enumerate(names) if STEP.fullmatch(name)]
    marks = np.flatnonzero(np.isin(host.name, steps) & (host.kind == HostKind.ANNOTATION))
    calls = np.flatnonzero(host.kind == HostKind.RUNTIME)
    if profile.device != "cuda" or not len(marks) or not len(calls):
        return None
    waits = np.array([_waiting(names[host.name[row]], int(host.end[row] - host.start[row])) for row in calls])
    total = np.concatenate([[0], np.cumsum(waits)])
    starts = host.start[calls]
    busy = []
    for row in marks:
        first, last = np.searchsorted(starts, [host.start[row], host.end[row]])
        busy.append(int(host.end[row] - host.start[row]) - int(total[last] - total[first]))
    return max(0.0, statistics.median(busy) / 1e9)


def _waiting(name: str, duration: int) -> int:
    if BLOCKING.search(name):
        return duration
    return max(0, duration - LONGEST_LAUNCH) if LAUNCHING.search(name) else 0
