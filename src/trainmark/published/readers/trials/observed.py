"""What the hooks saw of a program that knows nothing of us: steps, and the batches of its data loaders."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from trainmark.events import Event, Mark, RunEnd, RunStart, Scope, Step, stream
from trainmark.events.stream import StreamError, line_blocks
from trainmark.published.readers.trials.output import Output, ReaderError

# The stream that knows most of the program comes first.
SOURCES = ("pytorch", "keras", "jax")
# A loader that feeds the training hands out batches before one step after another, one for evaluation all of
# its batches between two steps.
TRAINING_SHARE = 0.5
STEPS = "steps"


@dataclass(frozen=True)
class Load:
    """The batches of one data loader between two steps; `samples` is None where they could not be counted."""

    loader: int
    batches: int
    samples: int | None
    wait: float
    asked: float
    came: float


@dataclass(frozen=True)
class ObservedStep:
    """The end of a step, and the batches that were handed out before it."""

    event: Step
    loads: tuple[Load, ...]


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
    if not output.samples_per_step:
        first = max(first_fed(steps) for _, steps, _ in ranks)
        ranks = [(_later(start, steps, first), steps[first:], marks) for start, steps, marks in ranks]
    counted = [] if output.samples_per_step else [samples_of(steps) for _, steps, _ in ranks]
    known = bool(counted) and all(samples is not None for samples in counted)
    for index, (start, steps, marks) in enumerate(ranks):
        own = counted[index] if known else None
        if own is None and index > 0:
            return  # steps, and samples of all ranks, are rank 0's to tell
        yield from _events(start, steps, marks, own, output)


def _events(
    start: RunStart,
    steps: Sequence[ObservedStep],
    marks: Sequence[Mark],
    counted: Sequence[int] | None,
    output: Output,
) -> Iterator[Event]:
    per_step = output.samples_per_step
    unit = output.unit if per_step or counted else STEPS
    facts = {**start.facts, "samples": _samples_source(per_step, counted)}
    yield replace(start, unit=unit, scope=Scope.RANK if counted else Scope.GLOBAL, facts=facts)
    training = training_loaders(steps)
    pauses = [*marks, *evaluations(steps, training)]
    pauses.sort(key=lambda mark: mark.mono or 0.0)
    for number, step in enumerate(steps):
        while pauses and (pauses[0].mono or 0.0) <= (step.event.mono or 0.0):
            yield pauses.pop(0)
        waits = [load.wait for load in step.loads if load.loader in training]
        samples = per_step or (counted[number] if counted else 1)
        yield replace(step.event, samples=samples, data_wait=sum(waits) if training else None)
    last = steps[-1].event
    yield RunEnd(start.rank, mono=last.mono, wall=last.wall)


def _samples_source(per_step: float | None, counted: Sequence[int] | None) -> str:
    if per_step:
        return "as given by --samples-per-step"
    return "counted in the batches of the data loader" if counted else "not known; steps are counted"


def training_loaders(steps: Sequence[ObservedStep]) -> frozenset[int]:
    """The loaders that mostly hand out batches before steps that follow one another.

    A program may make a loader anew for every epoch.
    """
    loaders = [frozenset(load.loader for load in step.loads) for step in steps]
    seen = Counter(loader for present in loaders for loader in present)
    beside: Counter[int] = Counter()
    for before, present, after in zip(
        [frozenset(), *loaders], loaders, [*loaders[1:], frozenset()], strict=False
    ):
        beside.update(present & (before | after))
    return frozenset(loader for loader, count in seen.items() if beside[loader] > TRAINING_SHARE * count)


def first_fed(steps: Sequence[ObservedStep]) -> int:
    """The first step that a training loader feeds, 0 where none does.

    Steps before it, such as those before a CUDA graph is captured, do not count.
    """
    training = training_loaders(steps)
    fed = (number for number, step in enumerate(steps) if any(load.loader in training for load in step.loads))
    return next(fed, 0)


def _later(start: RunStart, steps: Sequence[ObservedStep], first: int) -> RunStart:
    """The start of a rank without its steps before `first`: the end of the last of them."""
    if first == 0:
        return start
    before = steps[first - 1].event
    return replace(start, mono=before.mono, wall=before.wall)


def samples_of(steps: Sequence[ObservedStep]) -> list[int] | None:
    """Of each step; None where one loader alone does not tell it.

    A program that asks for the next batch before it trains on the last one has none left for an epoch's last
    step; that step takes the batch that its epoch's first one has too many.
    """
    training = training_loaders(steps)
    by_step = [[load for load in step.loads if load.loader in training] for step in steps]
    if any(len(loads) > 1 or load.samples is None for loads in by_step for load in loads):
        return None
    samples = [sum(load.samples or 0 for load in loads) for loads in by_step]
    batches = [sum(load.batches for load in loads) for loads in by_step]
    for empty in (number for number, count in enumerate(samples) if not count):
        ahead = next((number for number in range(empty - 1, -1, -1) if batches[number] > 1), None)
        if ahead is None:
            return None
        moved = samples[ahead] // batches[ahead]
        samples[ahead], batches[ahead] = samples[ahead] - moved, batches[ahead] - 1
        samples[empty], batches[empty] = moved, 1
    return samples


def evaluations(steps: Sequence[ObservedStep], training: frozenset[int]) -> Iterator[Mark]:
    """Where batches came from another loader between two steps: until the training asks for its own again."""
    for step in steps[1:]:
        others = [load for load in step.loads if load.loader not in training]
        if not others or not training:
            continue
        begin, end = min(load.asked for load in others), max(load.came for load in others)
        again = [load.asked for load in step.loads if load.loader in training and load.asked > end]
        for state, mono in (("begin", begin), ("end", min(again, default=end))):
            if mono <= (step.event.mono or 0.0):
                wall = mono + (step.event.wall or 0.0) - (step.event.mono or 0.0)
                yield Mark("eval", step.event.rank, mono, wall, {"state": state})


def _read_rank(file: Path) -> tuple[RunStart, list[ObservedStep], list[Mark]]:
    start: RunStart | None = None
    steps: list[ObservedStep] = []
    marks: list[Mark] = []
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
            steps.append(ObservedStep(event, _loads(parsed.get("loads"), file.name)))
        elif isinstance(event, Mark):
            marks.append(event)
    if start is None or not steps:
        raise ReaderError(f"{file.name} holds no step.")
    return start, steps, marks


def _loads(rows: Any, name: str) -> tuple[Load, ...]:
    try:
        return tuple(
            Load(int(loader), int(batches), None if samples is None else int(samples), *map(float, times))
            for loader, batches, samples, *times in rows or ()
        )
    except (TypeError, ValueError) as error:
        raise StreamError(f"{name}: a step's loads cannot be {rows!r:.80}") from error
