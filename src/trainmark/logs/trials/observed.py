"""What the hooks saw of a program that knows nothing of us: its steps, their batches, and where it paused."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from trainmark.events import Event, Mark, RunEnd, RunStart, Scope, Step, stream
from trainmark.events.ranges import text_in
from trainmark.events.stream import StreamError, line_blocks
from trainmark.logs.trials.observed_steps import (
    EVALUATED,
    Feed,
    LoaderRead,
    ObservedPause,
    ObservedStep,
    first_fed,
    join_rounds,
    samples_of,
    trained_loads,
    training_feeds,
)
from trainmark.logs.trials.output import Output, ReaderError

# Calls that mark a pause in more of the steps than this are part of the step, as where a teacher evaluates.
PART_OF_A_STEP = 0.5
EVALUATION = "evaluation"


def evaluating_share(steps: Sequence[ObservedStep]) -> float | None:
    """Share of the time in which calls say that the program evaluates, where that is part of its steps."""
    pauses = [pause for step in steps[1:] for pause in step.pauses if pause.kind == EVALUATION]
    if EVALUATION in _rare_pauses(steps) or not pauses:
        return None
    begin, end = (step.event.mono or 0.0 for step in (steps[0], steps[-1]))
    return sum(pause.end - pause.begin for pause in pauses) / (end - begin) if end > begin else None


def _rare_pauses(steps: Sequence[ObservedStep]) -> set[str]:
    """The kinds of pauses that are no part of the step."""
    called = Counter(kind for step in steps for kind in {pause.kind for pause in step.pauses})
    return {kind for kind, count in called.items() if count <= PART_OF_A_STEP * len(steps)}


def pause_marks(steps: Sequence[ObservedStep], training: frozenset[Feed]) -> list[list[Mark]]:
    """Of each step the marks of its pauses.

    A pause is where batches came from a pass that does not train, until the training asks for its own again;
    and where the program's calls say that it evaluates or saves, unless they do in most of the steps.
    """
    rare = _rare_pauses(steps)
    marks: list[list[Mark]] = [[] for _ in steps]
    for number, (before, step) in enumerate(pairwise(steps), 1):
        begin, end = before.event.mono or 0.0, step.event.mono or 0.0
        fed = [load.asked for load in trained_loads(step, training)]
        others = [load for load in step.loads if load.feed not in training or load.use == EVALUATED]
        pauses = [pause for pause in step.pauses if pause.kind in rare or (others and training)]
        if others and training:
            pauses.append(_evaluation(others, fed, begin))
        trained = 0.0
        for pause in _merged_pauses(pauses, fed):
            stop, trained = min(pause.end, end), trained + max(0.0, pause.begin - begin)
            if stop > begin:
                marks[number] += _pause_events(step.event, replace(pause, end=stop), begin, trained)
                begin = stop
    return marks


def _evaluation(loads: Sequence[LoaderRead], fed: Sequence[float], before: float) -> ObservedPause:
    """Without a training batch, what lies between the step before and these batches is no training either."""
    begin, end = min(load.asked for load in loads), max(load.came for load in loads)
    again = min((asked for asked in fed if asked > end), default=end)
    return ObservedPause(EVALUATION, begin if any(asked < begin for asked in fed) else before, again)


def _merged_pauses(pauses: Sequence[ObservedPause], fed: Sequence[float]) -> list[ObservedPause]:
    """In order, overlapping ones joined; none lasts longer than until the training asks for a batch."""
    apart: list[ObservedPause] = []
    for pause in sorted(pauses, key=lambda pause: pause.begin):
        end = min([pause.end, *(asked for asked in fed if asked > pause.begin)])
        if apart and pause.begin <= apart[-1].end:
            apart[-1] = replace(apart[-1], end=max(end, apart[-1].end))
        else:
            apart.append(replace(pause, end=end))
    return apart


def _pause_events(step: Step, pause: ObservedPause, before: float, trained: float) -> Iterator[Mark]:
    """`trained` seconds of the step lie before the pause."""
    offset = (step.wall or 0.0) - (step.mono or 0.0)
    begin = max(before, pause.begin)
    facts = {"pause": pause.kind, "seconds": pause.end - begin, "trained_before": trained}
    if pause.kind == EVALUATION:
        yield Mark("eval", step.rank, begin, begin + offset, {"state": "begin"})
        facts["state"] = "end"
    kind = "eval" if pause.kind == EVALUATION else "checkpoint"
    yield Mark(kind, step.rank, pause.end, pause.end + offset, facts)


# The stream that knows most of the program comes first.
SOURCES = ("pytorch", "keras", "jax")
STEP_KINDS = "steps"


def streams(folder: Path) -> list[Path]:
    """The files of the framework that was seen to train, one a rank; none where nothing was."""
    for source in SOURCES:
        if files := sorted((folder / "events").glob(f"observed-{source}-rank*.jsonl")):
            return files
    return []


def read(output: Output) -> Iterator[Event]:
    files = streams(output.folder)
    if not files:
        raise ReaderError("no step of a training was seen in the program.")
    ranks = [_read_rank(file) for file in files]
    uncounted = len(list((output.folder / "events").glob("uncounted-*")))
    if not output.samples_per_step:
        first = max(first_fed(steps) for _, steps, _ in ranks)
        ranks = [(_later(start, steps, first), steps[first:], unequal) for start, steps, unequal in ranks]
    counted = [] if output.samples_per_step else [samples_of(steps) for _, steps, _ in ranks]
    known = bool(counted) and all(samples is not None for samples in counted)
    for index, (start, steps, unequal) in enumerate(ranks):
        own = counted[index] if known else None
        if own is None and index > 0:
            return  # steps, and samples of all ranks, are rank 0's to tell
        unclear = {
            "uncounted_trainings": uncounted,
            "unequal_turns": None if known else unequal,
            "evaluating_share": evaluating_share(steps),
        }
        start = replace(start, facts={**start.facts, **{k: v for k, v in unclear.items() if v}})
        yield from _events(start, steps, own, output)


def _events(
    start: RunStart,
    steps: Sequence[ObservedStep],
    counted: Sequence[int] | None,
    output: Output,
) -> Iterator[Event]:
    per_step = output.samples_per_step
    unit = output.unit if per_step or counted else STEP_KINDS
    facts = {**start.facts, "samples": _samples_source(per_step, counted, start)}
    yield replace(start, unit=unit, scope=Scope.RANK if counted else Scope.GLOBAL, facts=facts)
    training = training_feeds(steps)
    marks = pause_marks(steps, training)
    for number, step in enumerate(steps):
        yield from marks[number]
        waits = [load.wait for load in trained_loads(step, training)]
        samples = per_step or (counted[number] if counted else 1)
        yield replace(step.event, samples=samples, data_wait=sum(waits) if training else None)
    last = steps[-1].event
    yield RunEnd(start.rank, mono=last.mono, wall=last.wall)


def _samples_source(per_step: float | None, counted: Sequence[int] | None, start: RunStart) -> str:
    if per_step:
        return "as given by --samples-per-step"
    if not counted:
        return "not known; steps are counted"
    return text_in(start.facts, "samples") or "counted in the batches of the data loader"


def _later(start: RunStart, steps: Sequence[ObservedStep], first: int) -> RunStart:
    """The start of a rank without its steps before `first`: the end of the last of them."""
    if first == 0:
        return start
    before = steps[first - 1].event
    return replace(start, mono=before.mono, wall=before.wall)


def _read_rank(file: Path) -> tuple[RunStart, list[ObservedStep], str | None]:
    start: RunStart | None = None
    turns: list[ObservedStep] = []
    for line in (line for block in line_blocks(file) for line in block.splitlines(keepends=True)):
        if not line.endswith(b"\n"):
            break
        try:
            parsed = json.loads(line)
            event = stream.from_object(parsed)
        except (ValueError, RecursionError) as error:
            raise StreamError(f"{file.name}: {error}") from error
        if isinstance(event, RunStart):
            start = event
        elif isinstance(event, Step):
            turns.append(_observed(event, parsed, file.name))
        elif isinstance(event, RunEnd) and start is not None:
            start = replace(start, facts={**start.facts, **event.facts})
    if start is None or not turns:
        raise ReaderError(
            f"{file.name} holds no step: the program left before one that it may have made came to disk."
        )
    return start, *join_rounds(turns)


def _observed(event: Step, parsed: dict[str, Any], name: str) -> ObservedStep:
    try:
        loads = tuple(map(_load, parsed.get("loads") or ()))
        turn = tuple(int(number) for number in parsed.get("turn") or (0,))
        pauses = tuple(
            ObservedPause(str(kind), float(begin), float(end))
            for kind, begin, end in parsed.get("pauses") or ()
        )
    except (TypeError, ValueError) as error:
        raise StreamError(f"{name}: what was seen of a step cannot be {parsed!r:.80}") from error
    return ObservedStep(event, loads, turn, pauses)


def _load(row: Any) -> LoaderRead:
    loader, batches, samples, wait, asked, came, loader_pass, use = row
    counted, number = (None if count is None else int(count) for count in (samples, loader_pass))
    return LoaderRead(int(loader), int(batches), counted, float(wait), float(asked), float(came), number, use)
