"""The figure of a trial computed from nothing but its folder, and where a stored one differs from it."""

from __future__ import annotations

from collections.abc import Iterator
from math import isclose, isnan
from pathlib import Path
from typing import Any

from trainmark.base import typed_json
from trainmark.events import DeviceSample, stream
from trainmark.machine.devices import known_peak_flops
from trainmark.measure.doubts import DoubtCode
from trainmark.measure.figure import TrialFigure
from trainmark.measure.key import Key
from trainmark.measure.trace import TraceError, require_span_within, trace_of
from trainmark.measure.trial import WindowRules, measure_trial
from trainmark.measure.utilisation import NO_COUNTS, FlopCounts
from trainmark.store.files import StoreError
from trainmark.store.trial import EVENTS, SAMPLES, TrialRecord, TrialSpec
from trainmark.workloads import registry


def figure_of_folder(
    folder: Path,
    key: Key,
    warmup_steps: int,
    lasted: float | None = None,
    to_the_end: bool = False,
    declared: FlopCounts = NO_COUNTS,
) -> TrialFigure:
    """Measure a trial; TraceError or StreamError where its events cannot carry a figure.

    `lasted` is how long the trial took by our own clock, where that is known. `to_the_end` asks that every
    rank reported an end of its own. `declared` has the FLOP counts of the case's workload.
    """
    trace = trace_of(stream.read_ranks(folder / EVENTS))
    if lasted is not None:
        require_span_within(trace, lasted)
    if to_the_end and len(trace.end_facts) != len(trace.nodes):
        raise TraceError("not every rank came to its end.")
    # Of a training to a finish line no more than half is warm-up: it may have crossed it soon.
    if "epochs" in trace.facts:
        warmup_steps = min(warmup_steps, len(trace.ends) // 2)
    path = folder / SAMPLES
    samples = [each for each in stream.read(path) if isinstance(each, DeviceSample)] if path.exists() else []
    return measure_trial(
        trace,
        WindowRules(warmup_steps=warmup_steps),
        key=key,
        samples=samples,
        known_peak_flops=known_peak_flops(key.device or "", key.precision or ""),
        declared=declared,
    )


def recovered_record(folder: Path, spec: TrialSpec, key: Key, environment: str) -> TrialRecord:
    """Make the record of a trial whose own is damaged again; StoreError where its events do not carry it."""
    try:
        figure = figure_of_folder(folder, key, spec.warmup_steps, to_the_end=True)
    except ValueError as error:
        raise StoreError(f"its events cannot stand in for it: {error}") from error
    return TrialRecord(
        spec=spec,
        key=key,
        outcome="ok",
        detail="",
        rank=None,
        retries=(),
        started=spec.started or 0.0,
        seconds=figure.first_step_seconds + figure.seconds,
        environment=environment,
        figure=figure,
    )


# Sums of floats depend on the order of addition, which numpy chooses by the vector width of the processor.
RELATIVE_TOLERANCE = 1e-9
# Their sentences are worded differently from version to version.
DOUBTS = "doubts"
# Since 0.1.0 a warm-up that a usual smaller number of steps shows to be over is none that went on.
RAISED_LESS = frozenset({DoubtCode.WARMUP_PAST_WINDOW.value})


def recomputed_figure(folder: Path, record: TrialRecord) -> TrialFigure:
    """Measure a trial by the key and the warm-up of its record; ValueError where its events carry none."""
    return figure_of_folder(
        folder, record.key, record.spec.warmup_steps, record.seconds, declared=declared_counts(record.key)
    )


def declared_counts(key: Key) -> FlopCounts:
    """Return the FLOP counts that a built-in or installed workload declares; a path is never imported."""
    family = registry.families().get(key.workload)
    if family is None:
        return NO_COUNTS
    workload, axes = family.workload, {**family.workload.defaults, **dict(key.axes)}
    try:
        return FlopCounts(
            hardware=workload.hardware_flops(axes) if workload.hardware_flops else None,
            conventions=workload.conventions(axes) if workload.conventions else {},
        )
    except (ValueError, LookupError, TypeError, ArithmeticError):  # axes that the workload does not have
        return NO_COUNTS


def figure_differences(stored: dict[str, Any], figure: TrialFigure) -> Iterator[tuple[str, Any, Any]]:
    """Yield place, stored and recomputed value wherever a figure does not follow from the events.

    What an earlier version did not write yet is not compared; of doubts the codes are, and a stored one may
    have more of those that are raised less often now.
    """
    plain = typed_json.encode(figure)
    codes = [doubt["code"] for doubt in plain.pop(DOUBTS)]
    stored_doubts = stored.get(DOUBTS, [])
    stored_codes = [doubt.get("code") if isinstance(doubt, dict) else doubt for doubt in stored_doubts]
    fewer = [code for code in stored_codes if code in codes or code not in RAISED_LESS]
    yield from _differences("", {**stored, DOUBTS: fewer}, {**plain, DOUBTS: codes})


def _differences(place: str, stored: Any, recomputed: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(stored, dict) and isinstance(recomputed, dict):
        for name, value in recomputed.items():
            if name in stored:
                yield from _differences(f"{place}.{name}" if place else name, stored[name], value)
    elif isinstance(stored, list) and isinstance(recomputed, list) and len(stored) == len(recomputed):
        for number, (before, after) in enumerate(zip(stored, recomputed, strict=True)):
            yield from _differences(f"{place}[{number}]", before, after)
    elif not same_value(stored, recomputed):
        yield place, stored, recomputed


def same_value(stored: Any, recomputed: Any) -> bool:
    """Whether two values are equal, numbers up to the order of summation."""
    if isinstance(stored, bool) or isinstance(recomputed, bool):
        return stored is recomputed
    if isinstance(stored, (int, float)) and isinstance(recomputed, (int, float)):
        both_nan = isnan(stored) and isnan(recomputed)
        return both_nan or isclose(stored, recomputed, rel_tol=RELATIVE_TOLERANCE)
    return bool(stored == recomputed)
