"""From a run's folders to the document every layout reads."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from trainmark.base.secrets import scrub, scrub_text
from trainmark.events import DeviceSample, stream
from trainmark.logs.ledger import LedgerEntry, Standing, load_for, standing
from trainmark.measure.ab import contrasts
from trainmark.measure.figure import Result
from trainmark.measure.key import Key
from trainmark.measure.result import CaseTrial, summarize
from trainmark.measure.trace import TraceError, trace_of
from trainmark.pages.label import rate_unit
from trainmark.report.conformance import Conformance, conformance_in
from trainmark.report.document import Document, SampleSeries, StepTrace, TrialLine
from trainmark.report.sections.curves import curves_of
from trainmark.report.sections.frameworks import FrameworkTable, framework_tables
from trainmark.report.sections.nodes import nodes_of
from trainmark.store.measurements import FABRIC, REFERENCE_RATES, load_fabric, read_reference_rates
from trainmark.store.run import FACTS, NODES, RunFolder
from trainmark.store.trial import EVENTS, SAMPLES, TrialRecord
from trainmark.view.chart.thin import extremes

MOST_POINTS = 2000
# A page with hundreds of traces helps nobody; the first cases have theirs, the rest keep their events.
MOST_TRACES = 40


def document_of(run: RunFolder) -> Document:
    info, records = run.info, run.records()
    shown = _median_trials(records)[:MOST_TRACES]
    results = results_of(records)
    entries = load_for(result.key for result in results)
    return Document(
        name=info.name,
        title=info.name,
        about=info.about,
        created=datetime.fromtimestamp(info.created, timezone.utc).isoformat(timespec="seconds"),
        suite=scrub_text(run.suite),
        version=info.version,
        command=scrub_text(info.command),
        results=results,
        trials=tuple(_line(record) for record in records),
        skipped=info.skipped,
        traces=tuple(trace for record in shown for trace in _trace(run, record)),
        samples=tuple(series for record in shown for series in _samples(run, record)),
        environment=scrub({**run.or_damaged(NODES, lambda: nodes_of(run.nodes), {}), **run.environment}),
        published={result.key: standing_of(result, entries) for result in results},
        standings=_standings(results, entries),
        conformance=run.or_damaged(FACTS, lambda: _conformance(run.facts, records), {}),
        fabric=run.or_damaged(FABRIC, lambda: load_fabric(run.path), None),
        curves=curves_of(run, records),
        light=run.or_damaged(REFERENCE_RATES, lambda: read_reference_rates(run.path), ()),
        keys={record.spec.case: record.key for record in records if record.figure},
        contrasts=contrasts(info.against, rates_of(records)) if info.against else (),
        damaged=tuple(run.damaged.values()),
    )


def rates_of(records: Iterable[TrialRecord]) -> dict[str, dict[int, float]]:
    rates: dict[str, dict[int, float]] = defaultdict(dict)
    for record in records:
        if record.figure is not None:
            rates[record.spec.case][record.spec.repeat] = record.figure.throughput
    return rates


def frameworks_between(*runs: RunFolder) -> tuple[FrameworkTable, ...]:
    """The comparisons of frameworks that no run can make alone; of a case in several, the last one's."""
    records = [(run.facts, run.records()) for run in runs]
    sides = [{result.key: result for result in results_of(own)} for _, own in records]
    results = tuple({key: result for side in sides for key, result in side.items()}.values())
    marks = {key: mark for facts, own in records for key, mark in _conformance(facts, own).items()}
    entries = load_for(result.key for result in results)
    frameworks = [{key.framework for key in side} for side in sides]
    return tuple(
        table
        for table in framework_tables(results, _standings(results, entries), marks)
        if not any(own.issuperset(table.frameworks) for own in frameworks)
    )


def standing_of(result: Result, entries: Iterable[LedgerEntry]) -> Standing | None:
    """Place a result among the published rows in its own unit."""
    return standing(result.key, result.throughput, entries, rate_unit(result.unit))


def _standings(results: Iterable[Result], entries: Sequence[LedgerEntry]) -> dict[Key, Standing]:
    """Each result among the published ones of its own framework."""
    standings = {}
    for result in results:
        own = [entry for entry in entries if entry.row.framework == result.key.framework]
        if placed := standing_of(result, own):
            standings[result.key] = placed
    return standings


def _conformance(facts: Mapping[str, Any], records: Iterable[TrialRecord]) -> dict[Key, Conformance]:
    return {record.key: conformance_in(facts.get(record.spec.case)) for record in records}


def results_of(records: Iterable[TrialRecord]) -> tuple[Result, ...]:
    return tuple(summarize([CaseTrial(record.key, record.figure, record.environment) for record in records]))


def _line(record: TrialRecord) -> TrialLine:
    figure = record.figure
    interval = figure.interval if figure else None
    return TrialLine(
        case=record.spec.case,
        repeat=record.spec.repeat,
        outcome=record.outcome,
        throughput=figure.throughput if figure else None,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        warmup_steps=figure.window.first if figure else None,
        retries=len(record.retries),
        detail=scrub_text(record.detail),
        command=scrub_text(record.spec.command),
    )


def _median_trials(records: Sequence[TrialRecord]) -> list[TrialRecord]:
    """Of each case the trial whose throughput is the median, the lower one of two."""
    cases: dict[str, list[TrialRecord]] = defaultdict(list)
    for record in records:
        if record.figure is not None:
            cases[record.spec.case].append(record)

    def throughput(record: TrialRecord) -> float:
        return record.figure.throughput if record.figure else 0.0

    chosen = []
    for trials in cases.values():
        middle = statistics.median_low(throughput(trial) for trial in trials)
        chosen.append(next(trial for trial in trials if throughput(trial) == middle))
    return chosen


def _folder(run: RunFolder, record: TrialRecord) -> Path:
    return run.trial(record.spec.case, record.spec.repeat).done


def _trace(run: RunFolder, record: TrialRecord) -> list[StepTrace]:
    if record.figure is None:
        return []
    try:
        seconds = trace_of(stream.read_ranks(_folder(run, record) / EVENTS)).step_seconds.tolist()
    except (TraceError, stream.StreamError, OSError):
        return []
    steps = extremes(seconds, MOST_POINTS // 2)
    return [
        StepTrace(
            case=record.spec.case,
            seconds=tuple(seconds[step] for step in steps),
            steps=tuple(steps),
            window_first=record.figure.window.first,
            window_stop=record.figure.window.stop,
        )
    ]


def _samples(run: RunFolder, record: TrialRecord) -> list[SampleSeries]:
    path = _folder(run, record) / SAMPLES
    devices: dict[str, list[DeviceSample]] = defaultdict(list)
    try:
        for event in stream.read(path) if path.exists() else ():
            if isinstance(event, DeviceSample):
                devices[event.device].append(event)
    except (stream.StreamError, OSError):
        return []
    return [_series(record.spec.case, device, rows) for device, rows in devices.items()]


def _series(case: str, device: str, rows: list[DeviceSample]) -> SampleSeries:
    rows = rows[:: max(1, -(-len(rows) // MOST_POINTS))]
    began = rows[0].mono
    return SampleSeries(
        case=case,
        device=device,
        seconds=tuple(row.mono - began for row in rows),
        utilisation=tuple(row.utilisation for row in rows),
        power_watts=tuple(row.power_watts for row in rows),
        temperature_c=tuple(row.temperature_c for row in rows),
        clock_mhz=tuple(row.clock_mhz for row in rows),
        memory_bytes=tuple(row.memory_bytes for row in rows),
    )
