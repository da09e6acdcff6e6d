"""What is one step of an observed training, and which batches it trained on.

Data loaders feed evaluations as well, and several optimizers may take turns or follow one another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TypeVar

from trainmark.events import Step

# What the hooks say became of batches, where they know it.
TRAINED, EVALUATED = "trained", "evaluated"
# A pass that feeds the training hands out batches before one step after another, an evaluation all of its
# batches between two steps.
TRAINING_SHARE = 0.5


@dataclass(frozen=True)
class LoaderRead:
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
    loads: tuple[LoaderRead, ...]
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


def trained_loads(step: ObservedStep, training: frozenset[Feed]) -> list[LoaderRead]:
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


def _side_by_side(by_step: Sequence[Sequence[LoaderRead]]) -> bool:
    """Whether a step takes batches of two passes that run at the same time, as of two loaders."""
    lives: dict[Feed, tuple[float, float]] = {}
    for load in (load for loads in by_step for load in loads):
        begin, end = lives.get(load.feed, (load.asked, load.came))
        lives[load.feed] = min(begin, load.asked), max(end, load.came)
    pairs = {pair for loads in by_step for pair in combinations(sorted({load.feed for load in loads}), 2)}
    return any(
        max(lives[one][0], lives[other][0]) < min(lives[one][1], lives[other][1]) for one, other in pairs
    )


def _asked_ahead(by_step: Sequence[Sequence[LoaderRead]], batches: Sequence[int]) -> list[tuple[int, int]]:
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


# As in the hooks: what comes more seldom does not make the others wait for it.
LONGEST_ROUND = 8
# Rounds that differ from the usual one, as at the ends of a training, in this share of all leave it certain.
ODD_ROUNDS, FEWEST_ODD_ROUNDS = 0.05, 2


def join_rounds(turns: Sequence[ObservedStep]) -> tuple[list[ObservedStep], str | None]:
    """Join the turns of each round into one step, and say how unequal turns are where a round is not certain.

    An optimizer that comes back within LONGEST_ROUND turns ends a step when it comes. One that never comes
    again, as that of a fold, belongs to no step of the next.
    """
    turns = _with_newcomers(turns)
    open_turns = _is_open(turns)
    steps: list[ObservedStep] = []
    gathered: list[ObservedStep] = []
    for number, turn in enumerate(turns):
        gathered.append(turn)
        if number not in open_turns:
            steps.append(replace(_joined_round(gathered), event=replace(turn.event, step=len(steps))))
            gathered = []
    return steps, _unequal(steps)


def _joined_round(turns: Sequence[ObservedStep]) -> ObservedStep:
    if len(turns) == 1:
        return turns[0]
    return ObservedStep(
        turns[-1].event,
        tuple(load for turn in turns for load in turn.loads),
        tuple(number for turn in turns for number in turn.turn),
        tuple(pause for turn in turns for pause in turn.pauses),
    )


def _with_newcomers(turns: Sequence[ObservedStep]) -> list[ObservedStep]:
    """Join the first turns of optimizers, which stand alone, with those that they later take turns with."""
    together = {frozenset(turn.turn) for turn in turns if len(turn.turn) > 1}
    known: set[int] = set()
    joined: list[ObservedStep] = []
    for turn in turns:
        is_new = known.isdisjoint(turn.turn)
        known.update(turn.turn)
        both = frozenset((*joined[-1].turn, *turn.turn)) if joined else frozenset[int]()
        if is_new and len(both) > 1 and any(both <= each for each in together):
            joined[-1] = _joined_round([joined[-1], turn])
        else:
            joined.append(turn)
    return joined


def _is_open(turns: Sequence[ObservedStep]) -> set[int]:
    """The turns that end no step: an optimizer that was or will be there is still to come."""
    places: dict[int, list[int]] = {}
    for number, turn in enumerate(turns):
        for optimizer in set(turn.turn):
            places.setdefault(optimizer, []).append(number)
    waiting: set[int] = set()
    for numbers in (numbers for numbers in places.values() if 1 < len(numbers) < len(turns)):
        for before, after in zip([-1, *numbers], numbers, strict=False):
            usual = numbers[1] - numbers[0] if before < 0 else LONGEST_ROUND
            if after - before <= min(usual, LONGEST_ROUND):
                waiting.update(range(before + 1, after))
        last, usual = numbers[-1], numbers[-1] - numbers[-2]
        if len(turns) - last - 1 <= min(usual, LONGEST_ROUND):
            waiting.update(range(last + 1, len(turns)))
    return waiting


def _unequal(steps: Sequence[ObservedStep]) -> str | None:
    """How often each optimizer stepped, where steps are made of different turns."""
    made_of = Counter(tuple(sorted(Counter(step.turn).values())) for step in steps)
    odd = len(steps) - made_of.most_common(1)[0][1] if steps else 0
    if odd <= max(FEWEST_ODD_ROUNDS, ODD_ROUNDS * len(steps)):
        return None
    counts = Counter(number for step in steps for number in step.turn)
    return " : ".join(str(count) for _, count in counts.most_common(4))
