"""The floors that a step is held against: the most that any trial of a run has measured on the same devices.

What one trial finds at its end is a few percent off, and what one framework can ask for may be far off: the
device is the same, so its best is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trainmark.measure.figure import MEASURED, TrialFigure, Utilisation
from trainmark.measure.key import Key

Peaks = dict[object, float]


def on_common_floors(trials: Sequence[tuple[Key, TrialFigure | None]]) -> list[TrialFigure | None]:
    """The same figures, their shares of arithmetic and of memory told by the best peaks of their place."""
    flops: Peaks = {}
    bandwidth: Peaks = {}
    for key, figure in trials:
        if figure is None or key.device is None:  # two unknown devices need not be alike
            continue
        if figure.utilisation and figure.utilisation.source == MEASURED:
            flops[_place(key)] = max(figure.utilisation.peak_flops, flops.get(_place(key), 0.0))
        if figure.peak_bandwidth:
            bandwidth[_place(key)] = max(figure.peak_bandwidth, bandwidth.get(_place(key), 0.0))
    return [
        figure and _of_memory(_of_arithmetic(figure, flops.get(_place(key))), bandwidth.get(_place(key)))
        for key, figure in trials
    ]


def _place(key: Key) -> object:
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
