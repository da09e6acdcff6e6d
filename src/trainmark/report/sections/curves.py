"""The curves of the trainings in a run: losses thinned to what a screen can show, every evaluation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trainmark.events import stream
from trainmark.measure.figure import Finish
from trainmark.measure.trace import Trace, TraceError, trace_of
from trainmark.report.document import Curve
from trainmark.store.run import RunFolder
from trainmark.store.trial import EVENTS, TrialRecord

MOST_POINTS = 400
# Beyond this many a page takes seconds to open; the first ones have theirs, the rest keep their events.
MOST_CURVES = 60


def curves_of(run: RunFolder, records: Sequence[TrialRecord]) -> tuple[Curve, ...]:
    finished = [record for record in records if record.figure and record.figure.finish]
    curves = (_curve(run, record) for record in finished[:MOST_CURVES])
    return tuple(curve for curve in curves if curve is not None)


def _curve(run: RunFolder, record: TrialRecord) -> Curve | None:
    assert record.figure is not None and record.figure.finish is not None
    folder = run.trial(record.spec.case, record.spec.repeat).done
    try:
        trace = trace_of(stream.read_ranks(folder / EVENTS))
    except (TraceError, stream.StreamError, OSError):
        return None
    return curve_of(record.spec.case, record.spec.repeat, trace, record.figure.finish)


def curve_of(case: str, repeat: int, trace: Trace, finish: Finish) -> Curve:
    start = trace.start if trace.first_start is None else trace.first_start
    places = trace.loss_steps
    numbers = np.arange(len(trace.ends)) if trace.numbers is None else trace.numbers
    stretches = np.array_split(np.arange(len(places)), min(MOST_POINTS, max(1, len(places))))
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
