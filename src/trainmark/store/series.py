"""What is drawn of the trials of a run: step times, samples of the devices, and curves of learning."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from trainmark.events import DeviceSample, stream
from trainmark.measure.figure import Evaluation, Finish
from trainmark.measure.trace import Trace, TraceError, trace_of
from trainmark.metric import Metric
from trainmark.store.run import RunFolder
from trainmark.store.trial import EVENTS, SAMPLES, TrialRecord
from trainmark.view.chart.marks import extremes

MOST_POINTS = 2000
MOST_LOSSES = 400
# A page with hundreds of traces helps nobody; the first cases have theirs, the rest keep their events.
MOST_TRACES, MOST_CURVES = 40, 60


@dataclass(frozen=True)
class StepTrace:
    """Step times of a case's median trial, thinned; its window is `window_first` ≤ step < `window_stop`."""

    case: str
    seconds: tuple[float, ...]
    steps: tuple[int, ...]
    window_first: int
    window_stop: int


@dataclass(frozen=True)
class SampleSeries:
    """Samples of one device during that same trial; `seconds` count from the trial's start."""

    case: str
    device: str
    seconds: tuple[float, ...]
    utilisation: tuple[float | None, ...]
    power_watts: tuple[float | None, ...]
    temperature_c: tuple[float | None, ...]
    clock_mhz: tuple[float | None, ...]
    memory_bytes: tuple[float | None, ...]


SAMPLED = ("utilisation", "power_watts", "temperature_c", "clock_mhz", "memory_bytes")


@dataclass(frozen=True)
class Curve:
    """What one trial of a training by epochs learnt; `seconds` count from the start of the run.

    The losses are means over stretches of steps; `losses[i]` is that of the stretch that ends at `steps[i]`.
    """

    case: str
    repeat: int
    seed: int | None
    target: float | None
    """The value of the first metric to reach, where there is one."""
    steps: tuple[int, ...]
    seconds: tuple[float, ...]
    losses: tuple[float, ...]
    evaluations: tuple[Evaluation, ...]
    crossing: Evaluation | None
    metrics: tuple[Metric, ...] = ()
    floor: float | None = None
    """The loss below which no model comes, where the data have a known entropy."""


def step_traces(run: RunFolder, records: Sequence[TrialRecord]) -> Iterator[StepTrace]:
    """Yield the step times of the median trial of each case, where its events can be read."""
    for record in median_trials(records)[:MOST_TRACES]:
        trace = _trace(run, record)
        if trace is None or record.figure is None:
            continue
        seconds = trace.step_seconds.tolist()
        steps = extremes(seconds, MOST_POINTS // 2)
        window = record.figure.window
        taken = tuple(seconds[step] for step in steps)
        yield StepTrace(record.spec.case, taken, tuple(steps), window.first, window.stop)


def device_samples(run: RunFolder, records: Sequence[TrialRecord]) -> Iterator[SampleSeries]:
    """Yield the samples of each device during those trials."""
    for record in median_trials(records)[:MOST_TRACES]:
        path = run.trial(record.spec.case, record.spec.repeat).done / SAMPLES
        devices: dict[str, list[DeviceSample]] = defaultdict(list)
        try:
            for event in stream.read(path) if path.exists() else ():
                if isinstance(event, DeviceSample):
                    devices[event.device].append(event)
        except (stream.StreamError, OSError):
            continue
        for device, rows in devices.items():
            yield _samples(record.spec.case, device, rows[:: max(1, -(-len(rows) // MOST_POINTS))])


def curves(run: RunFolder, records: Sequence[TrialRecord]) -> Iterator[Curve]:
    """Yield the curves of the trials that were trained by epochs."""
    finished = [record for record in records if record.figure and record.figure.finish]
    for record in finished[:MOST_CURVES]:
        trace = _trace(run, record)
        if trace is not None and record.figure is not None and record.figure.finish is not None:
            yield curve_of(record.spec.case, record.spec.repeat, trace, record.figure.finish)


def median_trials(records: Sequence[TrialRecord]) -> list[TrialRecord]:
    """Return of each case the trial whose throughput is the median, the lower one of two."""
    cases: dict[str, list[tuple[float, TrialRecord]]] = defaultdict(list)
    for record in records:
        if record.figure is not None:
            cases[record.spec.case].append((record.figure.throughput, record))
    middles = (
        (statistics.median_low(throughput for throughput, _ in trials), trials) for trials in cases.values()
    )
    return [next(record for rate, record in trials if rate == middle) for middle, trials in middles]


def curve_of(case: str, repeat: int, trace: Trace, finish: Finish) -> Curve:
    start = trace.start if trace.first_start is None else trace.first_start
    places = trace.loss_steps
    numbers = np.arange(len(trace.ends)) if trace.numbers is None else trace.numbers
    stretches = np.array_split(np.arange(len(places)), min(MOST_LOSSES, max(1, len(places))))
    filled = [stretch for stretch in stretches if stretch.size]
    ends = [int(places[stretch[-1]]) for stretch in filled]
    target = trace.facts.get("target")
    seed = trace.facts.get("seed")
    return Curve(
        case=case,
        repeat=repeat,
        seed=seed if isinstance(seed, int) else None,
        target=finish.metric.value_in(target) if finish.metric and isinstance(target, dict) else None,
        steps=tuple(int(numbers[end]) + 1 for end in ends),
        seconds=tuple(float(trace.ends[end]) - start for end in ends),
        losses=tuple(float(trace.losses[stretch].mean()) for stretch in filled),
        evaluations=finish.evaluations,
        crossing=finish.crossing,
        metrics=finish.metrics,
        floor=_floor(trace, finish),
    )


def _floor(trace: Trace, finish: Finish) -> float | None:
    """Return the lowest possible loss that the program reported, where the loss is what is evaluated."""
    lowest = trace.facts.get("best_loss")
    is_loss = finish.metric is not None and finish.metric.name == "loss"
    return float(lowest) if is_loss and isinstance(lowest, (int, float)) else None


def _trace(run: RunFolder, record: TrialRecord) -> Trace | None:
    folder = run.trial(record.spec.case, record.spec.repeat).done
    try:
        return trace_of(stream.read_ranks(folder / EVENTS))
    except (TraceError, stream.StreamError, OSError):
        return None


def _samples(case: str, device: str, rows: Sequence[DeviceSample]) -> SampleSeries:
    columns = {name: tuple(getattr(row, name) for row in rows) for name in SAMPLED}
    return SampleSeries(case, device, seconds=tuple(row.mono - rows[0].mono for row in rows), **columns)
