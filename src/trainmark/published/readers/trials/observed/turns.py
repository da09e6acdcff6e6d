"""What is one step where several optimizers take turns, or follow one another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from trainmark.published.readers.trials.observed.batches import ObservedStep

# As in the hooks: what comes more seldom does not make the others wait for it.
LONGEST_ROUND = 8
# Rounds that differ from the usual one, as at the ends of a training, in this share of all leave it certain.
ODD_ROUNDS, FEWEST_ODD_ROUNDS = 0.05, 2


def rounds(turns: Sequence[ObservedStep]) -> tuple[list[ObservedStep], str | None]:
    """Join the turns of each round into one step, and say how unequal turns are where a round is not certain.

    An optimizer that comes back within LONGEST_ROUND turns ends a step when it comes. One that never comes
    again, as that of a fold, belongs to no step of the next.
    """
    turns = _with_newcomers(turns)
    open_turns = _open(turns)
    steps: list[ObservedStep] = []
    gathered: list[ObservedStep] = []
    for number, turn in enumerate(turns):
        gathered.append(turn)
        if number not in open_turns:
            steps.append(replace(_joined(gathered), event=replace(turn.event, step=len(steps))))
            gathered = []
    return steps, _unequal(steps)


def _joined(turns: Sequence[ObservedStep]) -> ObservedStep:
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
            joined[-1] = _joined([joined[-1], turn])
        else:
            joined.append(turn)
    return joined


def _open(turns: Sequence[ObservedStep]) -> set[int]:
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
