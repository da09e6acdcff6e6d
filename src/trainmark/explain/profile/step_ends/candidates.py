"""What may be a step of a trace without annotations, and which of several candidates is."""

from __future__ import annotations

from typing import NamedTuple

from trainmark.explain.profile.step_ends.recurrence import Integers

# Share of the kernels or of their time. What is in every tenth step only is logging; if it is more than this,
# it is the optimizer, and the ten are micro-batches.
MOST_RARE = 0.005
EXPECTED_WITHIN = 0.2


class Candidate(NamedTuple):
    """A length that repeats, with what speaks for it."""

    ends: Integers  # the last kernel of each step, and before them that of the step before
    seconds: float
    rare: float  # share of kernels, or of their time, that is not in every step
    is_complete: bool  # with the optimizer's kernels, where any are known
    is_certain: bool  # no block of layers


def chosen(candidates: list[Candidate], expected_seconds: float | None) -> Integers | None:
    """Return the ends of the steps; `candidates` are from the shortest to the longest."""
    steps = [candidate for candidate in candidates if candidate.is_complete]
    while steps and not steps[-1].is_certain:
        steps.pop()
    # No block of layers is repeated on and on through several steps, so what is may be a step itself.
    steps = [step for step in steps if _overlap(step.ends, steps[-1].ends) > 0.5]
    if expected_seconds is not None:
        several = [_several(step, round(expected_seconds / step.seconds)) for step in steps]
        for choices in (candidates, several):
            nearest = min(choices, key=lambda choice: abs(choice.seconds - expected_seconds), default=None)
            if nearest and abs(nearest.seconds - expected_seconds) <= EXPECTED_WITHIN * expected_seconds:
                return nearest.ends
    for number, step in enumerate(steps):
        if all(step.rare <= longer.rare + MOST_RARE for longer in steps[number + 1 :]):
            return step.ends
    return None


def _overlap(ends: Integers, others: Integers) -> float:
    """Return the share of others that lies within."""
    return float((min(ends[-1], others[-1]) - max(ends[0], others[0])) / (others[-1] - others[0]))


def _several(step: Candidate, count: int) -> Candidate:
    """Return `count` of them as one, where at least two such remain."""
    if count < 2 or len(step.ends) <= 2 * count:
        return step
    return step._replace(ends=step.ends[::-count][::-1], seconds=step.seconds * count)
