"""What the hooks saw of a program that knows nothing of us: steps, and the batches of its data loaders."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from trainmark.events import Event, RunEnd, RunStart, Scope, Step, stream
from trainmark.events.ranges import text_in
from trainmark.events.stream import StreamError, line_blocks
from trainmark.published.readers.trials.observed.batches import (
    Load,
    ObservedPause,
    ObservedStep,
    first_fed,
    samples_of,
    trained_loads,
    training_feeds,
)
from trainmark.published.readers.trials.observed.pauses import evaluating_share, pause_marks
from trainmark.published.readers.trials.observed.turns import rounds
from trainmark.published.readers.trials.output import Output, ReaderError

# The stream that knows most of the program comes first.
SOURCES = ("pytorch", "keras", "jax")
STEPS = "steps"


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
    unit = output.unit if per_step or counted else STEPS
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
    return start, *rounds(turns)


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


def _load(row: Any) -> Load:
    loader, batches, samples, wait, asked, came, loader_pass, use = row
    counted, number = (None if count is None else int(count) for count in (samples, loader_pass))
    return Load(int(loader), int(batches), counted, float(wait), float(asked), float(came), number, use)
