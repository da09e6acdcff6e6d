"""FLOP/s of a trial over the peak: MFU, HFU, and the MFU by other codes' conventions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from trainmark.events.ranges import number_in, quantities_in
from trainmark.measure.figure import KNOWN, MEASURED, WRITTEN_IN, ConventionUtilisation, Utilisation
from trainmark.measure.key import Key
from trainmark.measure.trial.trace import Trace

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
