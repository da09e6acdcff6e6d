"""The figure of a finished trial, computed from nothing but its folder."""

from __future__ import annotations

from pathlib import Path

from trainmark.events import DeviceSample, stream
from trainmark.machine.devices import known_peak_flops
from trainmark.measure.figure import TrialFigure
from trainmark.measure.key import Key
from trainmark.measure.trace import TraceError, require_span_within, trace_of
from trainmark.measure.trial import WindowRules, measure_trial
from trainmark.measure.utilisation import NO_COUNTS, FlopCounts
from trainmark.store.files import StoreError
from trainmark.store.trial import EVENTS, SAMPLES, TrialRecord, TrialSpec


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
