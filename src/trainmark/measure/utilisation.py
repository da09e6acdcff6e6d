"""What of a device a trial used: MFU, HFU, the MFU by other codes' conventions, joules, the reference rate.

Peaks are those measured: the best that any trial of a run reached on the same devices. What one trial finds
at its end is a few percent off, and what one framework can ask for may be far off.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, isfinite

import numpy as np

from trainmark import __version__
from trainmark.base.typed_json import flattened
from trainmark.events import DeviceSample
from trainmark.events.ranges import number_in, quantities_in
from trainmark.events.schema import is_host
from trainmark.measure.figure import (
    KNOWN,
    MEASURED,
    WRITTEN_IN,
    ConventionUtilisation,
    Result,
    TrialFigure,
    Utilisation,
)
from trainmark.measure.key import Axes, Key
from trainmark.measure.statistics import Floats
from trainmark.measure.trace import Clock, Trace

# Of one device, whatever it is: nanoGPT's model.py divides by an A100's bf16 peak.
WRITTEN_IN_PEAKS = {"nanoGPT": 312e12}


@dataclass(frozen=True)
class FlopCounts:
    """FLOP of one sample: of the model, as the hardware computes them, and as other codes count them."""

    model: float | None = None
    hardware: float | None = None
    conventions: Mapping[str, float] = field(default_factory=dict)


NO_COUNTS = FlopCounts()


@dataclass(frozen=True)
class TrialUtilisation:
    """What one trial's rate is of the peak; nothing where the peak or the counts are not known."""

    model: Utilisation | None = None
    hardware: Utilisation | None = None
    conventions: tuple[ConventionUtilisation, ...] = ()


def utilisation_of(
    trace: Trace, key: Key | None, throughput: float, known_peak: float | None, declared: FlopCounts
) -> TrialUtilisation:
    """Take the counts from what rank 0 reported at its start, and what it did not from the declaration.

    `known_peak` is that of one device, used where the ranks did not measure their own.
    """
    counts = _reported(trace, declared)
    devices = key.devices if key else trace.world_size
    peak, source = peak_of_all_ranks(trace, "peak_flops"), MEASURED
    if peak is None and known_peak is not None:
        peak, source = known_peak * devices, KNOWN

    def of_peak(flops: float | None) -> Utilisation | None:
        return Utilisation(flops * throughput / peak, peak, source, flops) if flops and peak else None

    conventions = []
    for name, flops in counts.conventions.items():
        utilisation = of_peak(flops)
        if name in WRITTEN_IN_PEAKS:
            written = WRITTEN_IN_PEAKS[name] * devices
            utilisation = Utilisation(flops * throughput / written, written, WRITTEN_IN, flops)
        if utilisation is not None:
            conventions.append(ConventionUtilisation(name, utilisation))
    return TrialUtilisation(of_peak(counts.model), of_peak(counts.hardware), tuple(conventions))


def _reported(trace: Trace, declared: FlopCounts) -> FlopCounts:
    return FlopCounts(
        model=number_in(trace.facts, "flops_per_sample"),
        hardware=number_in(trace.facts, "hardware_flops_per_sample") or declared.hardware,
        conventions=quantities_in(trace.facts, "flops_by_convention") or declared.conventions,
    )


def peak_of_all_ranks(trace: Trace, name: str) -> float | None:
    """Return what the ranks measured at their end, added up, where all did."""
    measured = [float(value) for facts in trace.end_facts if (value := number_in(facts, name))]
    return sum(measured) if len(measured) == trace.world_size else None


Peaks = dict[object, float]


def with_best_peaks(trials: Sequence[tuple[Key, TrialFigure | None]]) -> list[TrialFigure | None]:
    """The same figures, their shares of arithmetic and of memory told by the best peaks of their place."""
    flops: Peaks = {}
    bandwidth: Peaks = {}
    for key, figure in trials:
        if figure is None or key.device is None:  # two unknown devices need not be alike
            continue
        if figure.utilisation and figure.utilisation.source == MEASURED:
            flops[_same_peaks(key)] = max(figure.utilisation.peak_flops, flops.get(_same_peaks(key), 0.0))
        if figure.peak_bandwidth:
            bandwidth[_same_peaks(key)] = max(figure.peak_bandwidth, bandwidth.get(_same_peaks(key), 0.0))
    return [
        figure
        and _of_memory(_of_arithmetic(figure, flops.get(_same_peaks(key))), bandwidth.get(_same_peaks(key)))
        for key, figure in trials
    ]


def _same_peaks(key: Key) -> object:
    """What trials with the same peaks have in common; ranks on one CPU share its cores."""
    return key.device, key.precision, key.threads, key.nodes, key.devices_per_node


def _of_arithmetic(figure: TrialFigure, peak: float | None) -> TrialFigure:
    if not peak:
        return figure
    return replace(
        figure,
        utilisation=figure.utilisation and _of_peak(figure.utilisation, peak),
        hardware_utilisation=figure.hardware_utilisation and _of_peak(figure.hardware_utilisation, peak),
        conventions=tuple(
            replace(convention, utilisation=_of_peak(convention.utilisation, peak))
            for convention in figure.conventions
        ),
    )


def _of_peak(own: Utilisation, peak: float) -> Utilisation:
    """The same over another peak; one that is not measured stays over its own."""
    if own.source != MEASURED:
        return own
    return replace(own, value=own.value * own.peak_flops / peak, peak_flops=peak)


def _of_memory(figure: TrialFigure, peak: float | None) -> TrialFigure:
    if not peak or figure.memory_share is None or figure.peak_bandwidth is None:
        return figure
    share = figure.memory_share * figure.peak_bandwidth / peak
    return replace(figure, memory_share=share, peak_bandwidth=peak)


def window_joules(
    samples: Sequence[DeviceSample], clock: Clock, spans: Sequence[tuple[float, float]]
) -> float | None:
    """Power of all devices integrated over the window (trapezoid); None where a device's is not known.

    The window is given as the spans in which the training did not pause.

    The host's processors count where they report power, but need not. A device needs two
    readings, one of them inside the window; beyond its outermost readings its power is taken as theirs.
    """
    power: dict[str, list[tuple[float, float]]] = {}
    for sample in samples:
        readings = power.setdefault(sample.device, [])
        if sample.power_watts is not None:
            readings.append((clock.of_sample(sample), sample.power_watts))
    for host in [device for device, readings in power.items() if is_host(device) and not readings]:
        del power[host]
    joules = [_integral(readings, spans) for readings in power.values()]
    known = [each for each in joules if each is not None]
    return sum(known) if known and len(known) == len(joules) else None


def _integral(readings: list[tuple[float, float]], spans: Sequence[tuple[float, float]]) -> float | None:
    inside = any(begin <= at <= end for begin, end in spans for at, _ in readings)
    if len(readings) < 2 or not inside:
        return None
    at, watts = np.array(sorted(readings)).T
    return sum(_span_integral(at, watts, begin, end) for begin, end in spans)


def _span_integral(at: Floats, watts: Floats, begin: float, end: float) -> float:
    grid = np.concatenate([[begin], at[(at > begin) & (at < end)], [end]])
    power = np.interp(grid, at, watts)
    return float(np.sum((power[1:] + power[:-1]) / 2 * np.diff(grid)))


FUSED = "fused"
HALF = "half"
# Both multiply in 16 bits at the same rate, so that one reference serves them.
HALF_PRECISIONS = frozenset({"amp", "bf16"})

Place = tuple[str, str, Axes, str]


@dataclass(frozen=True, order=True)
class ReferenceRate:
    """The fastest fused step on one device; `rate` is its samples a second, `version` Trainmark's.

    `precision` is `half` for amp and bf16, otherwise what a key calls it; `taken` is in ISO 8601, UTC.
    """

    device: str
    workload: str
    axes: Axes = field(metadata=flattened())
    precision: str
    rate: float
    batch: int
    version: str
    taken: str

    @property
    def place(self) -> Place:
        """What a result must have in common with it."""
        return self.device, self.workload, self.axes, self.precision


def is_fused(key: Key) -> bool:
    return FUSED in (key.compiler or "").split("+")


def reference_rates(
    results: Iterable[Result], taken: str, version: str = __version__
) -> tuple[ReferenceRate, ...]:
    """Of each device, workload, axes and precision the batch with the fastest median.

    Only one device alone, on synthetic data: what it waits for others or for data is not its own speed. On
    a CPU, whose results have threads, the step runs without its kernels and shows nothing.
    """
    fastest: dict[Place, ReferenceRate] = {}
    for result in results:
        key, place, batch = result.key, _place(result.key), result.key.batch_per_device
        alone = key.devices == 1 and key.threads is None and key.data == "synthetic" and is_fused(key)
        if not alone or place is None or batch is None or not 0 < result.throughput < inf:
            continue
        if place not in fastest or fastest[place].rate < result.throughput:
            fastest[place] = ReferenceRate(*place, result.throughput, batch, version, taken)
    return tuple(sorted(fastest.values()))


def merge_reference_rates(
    old: Iterable[ReferenceRate], new: Iterable[ReferenceRate]
) -> tuple[ReferenceRate, ...]:
    """Both, where they are of the same place the faster one, whenever it was taken.

    Light is the fastest that was seen. A later run with a small batch, or on a device that has been slowed
    down, says nothing of how fast the device could go.
    """
    fastest: dict[Place, ReferenceRate] = {}
    for each in (*old, *new):
        if each.place not in fastest or fastest[each.place].rate < each.rate:
            fastest[each.place] = each
    return tuple(sorted(fastest.values()))


def reference_rate_of(result: Result, known: Iterable[ReferenceRate]) -> ReferenceRate | None:
    """That of the same device, workload, axes and precision; its data may be of any kind."""
    place = _place(result.key)
    return next((each for each in known if each.place == place), None)


def share(result: Result, known: Iterable[ReferenceRate]) -> float | None:
    """The throughput of a device ÷ the reference's; None where there is none for it."""
    reference = reference_rate_of(result, known)
    if reference is None or not isfinite(result.throughput):
        return None
    return result.throughput / (result.key.devices * reference.rate)


def _place(key: Key) -> Place | None:
    if key.device is None or not key.axes or key.precision is None:
        return None
    return key.device, key.workload, key.axes, HALF if key.precision in HALF_PRECISIONS else key.precision
