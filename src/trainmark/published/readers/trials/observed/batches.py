"""Which of the batches that data loaders handed out were trained on, and between which steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeVar

from trainmark.events import Step

# What the hooks say became of batches, where they know it.
TRAINED, EVALUATED = "trained", "evaluated"
# A pass that feeds the training hands out batches before one step after another, an evaluation all of its
# batches between two steps.
TRAINING_SHARE = 0.5


@dataclass(frozen=True)
class Load:
    """Batches of one pass over a data loader between two steps; `samples` is None where not countable."""

    loader: int
    batches: int
    samples: int | None
    wait: float
    asked: float
    came: float
    loader_pass: int | None = None
    use: str | None = None

    @property
    def feed(self) -> Feed:
        return self.loader, self.loader_pass


Feed = tuple[int, "int | None"]
Name = TypeVar("Name", bound=Hashable)


@dataclass(frozen=True)
class ObservedPause:
    """From when to when the program evaluated or saved, as its calls tell."""

    kind: str
    begin: float
    end: float


@dataclass(frozen=True)
class ObservedStep:
    """The end of a step or of one turn of its optimizers, and what was seen since the one before it."""

    event: Step
    loads: tuple[Load, ...]
    turn: tuple[int, ...] = (0,)
    pauses: tuple[ObservedPause, ...] = ()


def training_feeds(steps: Sequence[ObservedStep]) -> frozenset[Feed]:
    """The passes whose batches feed steps that follow one another, or are followed by backward passes.

    A program may make a loader anew for every epoch. Where neither tells, as with epochs of one step, a
    loader trains whose passes feed steps that follow one another.
    """
    batches: Counter[Feed] = Counter()
    trained: Counter[Feed] = Counter()
    for load in (load for step in steps for load in step.loads):
        batches[load.feed] += load.batches
        trained[load.feed] += load.batches if load.use == TRAINED else 0
    training = _lasting([{load.feed for load in step.loads if load.use != EVALUATED} for step in steps])
    training |= {feed for feed, count in trained.items() if count > 0 and 2 * count >= batches[feed]}
    unclear = [
        {load.feed for load in step.loads if load.use is None and load.feed not in training} for step in steps
    ]
    loaders = _lasting([{loader for loader, _ in feeds} for feeds in unclear])
    return frozenset(training | {feed for feeds in unclear for feed in feeds if feed[0] in loaders})


def _lasting(present: Sequence[set[Name]]) -> set[Name]:
    """Those that are there before steps that follow one another."""
    seen = Counter(name for names in present for name in names)
    beside: Counter[Name] = Counter()
    for before, names, after in zip([set(), *present], present, [*present[1:], set()], strict=False):
        beside.update(names & (before | after))
    return {name for name, count in seen.items() if beside[name] > TRAINING_SHARE * count}


def trained_loads(step: ObservedStep, training: frozenset[Feed]) -> list[Load]:
    return [load for load in step.loads if load.feed in training and load.use != EVALUATED]


def first_fed(steps: Sequence[ObservedStep]) -> int:
    """The first step that a training loader feeds, 0 where none does.

    Steps before it, such as those before a CUDA graph is captured, do not count.
    """
    training = training_feeds(steps)
    return next((number for number, step in enumerate(steps) if trained_loads(step, training)), 0)


def samples_of(steps: Sequence[ObservedStep]) -> list[int] | None:
    """Of each step; None where one loader alone does not tell it.

    A program that asks for the next batch before it trains on the last one has none left for an epoch's last
    step; that step takes the batch that its epoch's first one has too many. In an epoch that was not trained
    to its end, no step takes it.
    """
    training = training_feeds(steps)
    by_step = [trained_loads(step, training) for step in steps]
    if any(load.samples is None for loads in by_step for load in loads) or _side_by_side(by_step):
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
    for first, extra in _asked_ahead(by_step, batches):
        samples[first] -= samples[first] // batches[first] * extra
    return samples


def _side_by_side(by_step: Sequence[Sequence[Load]]) -> bool:
    """Whether a step takes batches of two passes that run at the same time, as of two loaders."""
    lives: dict[Feed, tuple[float, float]] = {}
    for load in (load for loads in by_step for load in loads):
        begin, end = lives.get(load.feed, (load.asked, load.came))
        lives[load.feed] = min(begin, load.asked), max(end, load.came)
    pairs = {pair for loads in by_step for pair in combinations(sorted({load.feed for load in loads}), 2)}
    return any(
        max(lives[one][0], lives[other][0]) < min(lives[one][1], lives[other][1]) for one, other in pairs
    )


def _asked_ahead(by_step: Sequence[Sequence[Load]], batches: Sequence[int]) -> list[tuple[int, int]]:
    """The first steps of passes that have more batches than the other steps, but no more trained on."""
    fed: dict[Feed, list[int]] = {}
    for number, loads in enumerate(by_step):
        for feed in {load.feed for load in loads}:
            fed.setdefault(feed, []).append(number)
    ahead = []
    for first, *others in (numbers for numbers in fed.values() if len(numbers) > 2):
        trained = [
            sum(load.batches for load in by_step[number] if load.use == TRAINED)
            for number in (first, others[0])
        ]
        extra = batches[first] - Counter(batches[number] for number in others).most_common(1)[0][0]
        if extra > 0 and trained[0] == trained[1] > 0:
            ahead.append((first, extra))
    return ahead
