"""The time of all profiled steps taken apart by class, exactly; and the least time that each could take."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from trainmark.explain.explanation import ClassTime, Kernel, MeasuredPeaks, Overlap
from trainmark.explain.kernel_classes import CLASSES, COMMUNICATION, PRODUCT_CLASSES, class_of_operator
from trainmark.explain.operator_cost import Work
from trainmark.explain.profile import DeviceSpans, HostKind, Nanoseconds, Profile, union

CODES = {name: code for code, name in enumerate(CLASSES)}
MOST_KERNELS = 12  # named of a class, the longest first


class Gap(NamedTuple):
    """A time in which the device did nothing, inside one step; `step` is that step's number."""

    start: int
    end: int
    step: int

    @property
    def nanoseconds(self) -> int:
        return self.end - self.start


@dataclass(frozen=True)
class StepBreakdown:
    """`total` = Σ alone + Σ overlaps + Σ gaps; `busy` is without the gaps."""

    total: int
    classes: tuple[ClassTime, ...]
    overlaps: tuple[Overlap, ...]
    gaps: tuple[Gap, ...]

    @property
    def idle(self) -> int:
        return sum(gap.nanoseconds for gap in self.gaps)

    @property
    def busy(self) -> int:
        return self.total - self.idle


def breakdown(profile: Profile, classes: Sequence[str], most_kernels: int = MOST_KERNELS) -> StepBreakdown:
    """Sweep over all streams at once; what lies outside the steps does not count.

    A class is on where at least one of its spans runs. Between two neighbouring ends of such times a set of
    classes is on: one alone, several that overlap, or none, which is a gap.
    """
    if not profile.steps:
        return StepBreakdown(0, (), (), ())
    begin, end = profile.steps[0].start, profile.steps[-1].end
    codes = np.array([CODES[name] for name in classes], np.int8)
    start, stop = np.clip(profile.spans.start, begin, end), np.clip(profile.spans.end, begin, end)
    inside = (profile.spans.start < end) & (profile.spans.end > begin)
    points, sets = _sets(start, stop, codes, inside, profile)
    lasting = np.diff(points)
    by_set = np.zeros(1 << len(CLASSES), np.int64)
    np.add.at(by_set, sets, lasting)
    return StepBreakdown(
        end - begin,
        _class_times(profile, codes, inside, start, stop, by_set, most_kernels),
        _overlaps(by_set),
        _gaps(profile, points, sets),
    )


def _sets(
    start: Nanoseconds,
    stop: Nanoseconds,
    codes: npt.NDArray[np.int8],
    inside: npt.NDArray[np.bool_],
    profile: Profile,
) -> tuple[Nanoseconds, npt.NDArray[np.int64]]:
    """Return all points of change by time, and between each and the next the set of classes, a bit each.

    Every class's times are disjoint, so adding its bit at their starts and taking it away at their ends
    gives the set. Ends of steps are points as well: no gap crosses one.
    """
    edges = [profile.steps[0].start, *(step.end for step in profile.steps)]
    times, changes = [np.array(edges, np.int64)], [np.zeros(len(edges), np.int64)]
    for code in range(len(CLASSES)):
        own = inside & (codes == code)
        begins, ends = union(start[own], stop[own])
        times += [begins, ends]
        changes += [np.full(len(begins), 1 << code), np.full(len(ends), -(1 << code))]
    points = np.concatenate(times)
    order = np.argsort(points, kind="stable")
    return points[order], np.cumsum(np.concatenate(changes)[order])[:-1]


def _class_times(
    profile: Profile,
    codes: npt.NDArray[np.int8],
    inside: npt.NDArray[np.bool_],
    start: Nanoseconds,
    stop: Nanoseconds,
    by_set: npt.NDArray[np.int64],
    most_kernels: int,
) -> tuple[ClassTime, ...]:
    """Return the classes that occur, the longest first."""
    masks = np.arange(len(by_set))
    result = []
    for code, name in enumerate(CLASSES):
        own = np.flatnonzero(inside & (codes == code))
        if len(own):
            kernels = _kernels(profile.spans, own, stop[own] - start[own])
            result.append(
                ClassTime(
                    name,
                    alone=int(by_set[1 << code]),
                    busy=int(by_set[(masks >> code & 1) == 1].sum()),
                    launches=sum(kernel.launches for kernel in kernels),
                    kernels=tuple(kernels[:most_kernels]),
                )
            )
    return tuple(sorted(result, key=lambda time: (-time.busy, CODES[time.name])))


def _kernels(spans: DeviceSpans, rows: npt.NDArray[np.intp], lasting: Nanoseconds) -> list[Kernel]:
    """Return a class's kernels by the time of all their launches.

    On a CPU an operator has a span for each piece between the operators that it called: one launch.
    """
    names = spans.name[rows]
    times = np.zeros(len(spans.names), np.int64)
    np.add.at(times, names, lasting)
    pieces = (spans.launch[rows] < 0) & (spans.operator[rows] >= 0)
    _, first = np.unique(spans.operator[rows][pieces], return_index=True)
    launches = np.bincount(names[~pieces], minlength=len(times))
    launches += np.bincount(names[pieces][first], minlength=len(times))
    kernels = [
        Kernel(spans.names[name], int(times[name]), int(launches[name])) for name in np.unique(names).tolist()
    ]
    return sorted(kernels, key=lambda kernel: (-kernel.nanoseconds, kernel.name))


def _overlaps(by_set: npt.NDArray[np.int64]) -> tuple[Overlap, ...]:
    several = [mask for mask in np.flatnonzero(by_set).tolist() if mask.bit_count() > 1]
    overlaps = (
        Overlap(tuple(name for code, name in enumerate(CLASSES) if mask >> code & 1), int(by_set[mask]))
        for mask in several
    )
    return tuple(sorted(overlaps, key=lambda overlap: (-overlap.nanoseconds, overlap.classes)))


def _gaps(profile: Profile, points: Nanoseconds, sets: npt.NDArray[np.int64]) -> tuple[Gap, ...]:
    at = np.flatnonzero((sets == 0) & (np.diff(points) > 0))
    step = np.searchsorted(np.array([step.end for step in profile.steps]), points[at], side="right")
    columns = zip(points[at].tolist(), points[at + 1].tolist(), step.tolist(), strict=True)
    return tuple(Gap(start, end, profile.steps[index].number) for start, end, index in columns)


BANDWIDTH = "bandwidth"  # measured beside the FLOP/s of precisions

# Kernel names by the operands that they multiply, the narrower first: cuBLAS, cuDNN, CUTLASS. In cuBLAS's
# `nvjet_sm90_tst_256x128…` the letters are operands, arithmetic and result: t bfloat16, h float16, s float32.
PRECISION_NAMES = {
    "bf16": re.compile(r"bf16|bfloat16|nvjet_(?:\w+?_)?t[st][st]_"),
    "amp": re.compile(r"fp16|f16f16|16816|h884|hgemm|_half|half_t|h1688|nvjet_(?:\w+?_)?h[sh][sh]_"),
    "tf32": re.compile(r"tf32|s1688|nvjet_(?:\w+?_)?sst_"),
    "fp32": re.compile(r"sgemm|ffma|simt|f32f32_f32f32_f32|scudnn|nvjet_(?:\w+?_)?sss_"),
}
OPERAND_TYPES = {"float": "fp32", "c10::BFloat16": "bf16", "c10::Half": "amp"}  # as Kineto names them


def precision_of(classes: Sequence[ClassTime]) -> str | None:
    """Return the precision in which most of the time of products is spent, by the names of their kernels."""
    seconds: Counter[str] = Counter()
    for time in classes:
        for kernel in time.kernels if time.name in PRODUCT_CLASSES else ():
            name = kernel.name.lower()
            named = (precision for precision, names in PRECISION_NAMES.items() if names.search(name))
            if precision := next(named, None):
                seconds[precision] += kernel.nanoseconds
    return max(seconds, key=seconds.__getitem__) if seconds else None


def precision_of_operands(profile: Profile) -> str | None:
    """Return the precision of most products' first operands; a GPU may multiply float32 as tf32."""
    host = profile.host
    products = [index for index, name in enumerate(host.names) if class_of_operator(name) in PRODUCT_CLASSES]
    rows = np.flatnonzero(np.isin(host.name, products) & (host.kind == HostKind.OPERATOR)).tolist()
    types = [operands.types[0] for row in rows if (operands := host.operands.get(row)) and operands.types]
    known = Counter(OPERAND_TYPES[name] for name in types if name in OPERAND_TYPES)
    return known.most_common(1)[0][0] if known else None


def product_peak(
    measured: Mapping[str, float], classes: Sequence[ClassTime], profile: Profile, detail: Profile | None
) -> float | None:
    """Return the measured FLOP/s of the precision that a program nobody described multiplies in."""
    precision = precision_of(classes)
    if precision is None and profile.device == "cpu":
        precision = precision_of_operands(detail or profile)
    only = [name for name in measured if name != BANDWIDTH]
    if precision is None and len(only) == 1:
        precision = only[0]
    return measured.get(precision or "")


ARITHMETIC, MEMORY = "arithmetic", "memory"


def with_floors(
    classes: Sequence[ClassTime], work: Mapping[str, Work], peaks: MeasuredPeaks, steps: int
) -> tuple[ClassTime, ...]:
    """Return the classes with FLOP, bytes and floor of all steps; `work` is of one.

    A floor needs what is known of the whole class: FLOP with a peak rate, or bytes with a bandwidth. Of two
    the longer one binds; FLOP without a rate leave none, since bytes alone would be too little.
    Communication moves no memory by this count and has no floor here.
    """
    return tuple(_with_floor(time, work.get(time.name), peaks, steps) for time in classes)


def _with_floor(time: ClassTime, work: Work | None, peaks: MeasuredPeaks, steps: int) -> ClassTime:
    if work is None:
        return time
    flop = None if work.flop is None else work.flop * steps
    moved = None if work.bytes is None else work.bytes * steps
    time = replace(time, flop=flop, bytes=moved)
    bounds = []
    if flop and not peaks.flops:
        return time
    if flop and peaks.flops:
        bounds.append((flop / peaks.flops, ARITHMETIC))
    if moved and peaks.bandwidth and time.name != COMMUNICATION:
        bounds.append((moved / peaks.bandwidth, MEMORY))
    if not bounds:
        return time
    seconds, bound = max(bounds)
    return replace(time, floor=math.ceil(seconds * 1e9), bound=bound)
