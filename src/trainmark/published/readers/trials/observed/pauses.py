"""Where a training paused: evaluations and checkpoints between and amid its steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from trainmark.events import Mark, Step
from trainmark.published.readers.trials.observed.batches import (
    EVALUATED,
    Feed,
    Load,
    ObservedPause,
    ObservedStep,
    trained_loads,
)

# Calls that mark a pause in more of the steps than this are part of the step, as where a teacher evaluates.
PART_OF_A_STEP = 0.5
EVALUATION = "evaluation"


def evaluating_share(steps: Sequence[ObservedStep]) -> float | None:
    """Share of the time in which calls say that the program evaluates, where that is part of its steps."""
    pauses = [pause for step in steps[1:] for pause in step.pauses if pause.kind == EVALUATION]
    if EVALUATION in _rare(steps) or not pauses:
        return None
    begin, end = (step.event.mono or 0.0 for step in (steps[0], steps[-1]))
    return sum(pause.end - pause.begin for pause in pauses) / (end - begin) if end > begin else None


def _rare(steps: Sequence[ObservedStep]) -> set[str]:
    """The kinds of pauses that are no part of the step."""
    called = Counter(kind for step in steps for kind in {pause.kind for pause in step.pauses})
    return {kind for kind, count in called.items() if count <= PART_OF_A_STEP * len(steps)}


def pause_marks(steps: Sequence[ObservedStep], training: frozenset[Feed]) -> list[list[Mark]]:
    """Of each step the marks of its pauses.

    A pause is where batches came from a pass that does not train, until the training asks for its own again;
    and where the program's calls say that it evaluates or saves, unless they do in most of the steps.
    """
    rare = _rare(steps)
    marks: list[list[Mark]] = [[] for _ in steps]
    for number, (before, step) in enumerate(pairwise(steps), 1):
        begin, end = before.event.mono or 0.0, step.event.mono or 0.0
        fed = [load.asked for load in trained_loads(step, training)]
        others = [load for load in step.loads if load.feed not in training or load.use == EVALUATED]
        pauses = [pause for pause in step.pauses if pause.kind in rare or (others and training)]
        if others and training:
            pauses.append(_evaluation(others, fed, begin))
        trained = 0.0
        for pause in _apart(pauses, fed):
            stop, trained = min(pause.end, end), trained + max(0.0, pause.begin - begin)
            if stop > begin:
                marks[number] += _marks(step.event, replace(pause, end=stop), begin, trained)
                begin = stop
    return marks


def _evaluation(loads: Sequence[Load], fed: Sequence[float], before: float) -> ObservedPause:
    """Without a training batch, what lies between the step before and these batches is no training either."""
    begin, end = min(load.asked for load in loads), max(load.came for load in loads)
    again = min((asked for asked in fed if asked > end), default=end)
    return ObservedPause(EVALUATION, begin if any(asked < begin for asked in fed) else before, again)


def _apart(pauses: Sequence[ObservedPause], fed: Sequence[float]) -> list[ObservedPause]:
    """In order, overlapping ones joined; none lasts longer than until the training asks for a batch."""
    apart: list[ObservedPause] = []
    for pause in sorted(pauses, key=lambda pause: pause.begin):
        end = min([pause.end, *(asked for asked in fed if asked > pause.begin)])
        if apart and pause.begin <= apart[-1].end:
            apart[-1] = replace(apart[-1], end=max(end, apart[-1].end))
        else:
            apart.append(replace(pause, end=end))
    return apart


def _marks(step: Step, pause: ObservedPause, before: float, trained: float) -> Iterator[Mark]:
    """`trained` seconds of the step lie before the pause."""
    offset = (step.wall or 0.0) - (step.mono or 0.0)
    begin = max(before, pause.begin)
    facts = {"pause": pause.kind, "seconds": pause.end - begin, "trained_before": trained}
    if pause.kind == EVALUATION:
        yield Mark("eval", step.rank, begin, begin + offset, {"state": "begin"})
        facts["state"] = "end"
    kind = "eval" if pause.kind == EVALUATION else "checkpoint"
    yield Mark(kind, step.rank, pause.end, pause.end + offset, facts)
