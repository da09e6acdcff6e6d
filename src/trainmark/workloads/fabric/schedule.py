"""Rounds of pairs in which no rank has two partners at a time, and how often each is repeated.

Runs inside every framework's interpreter: standard library only, Python 3.7+.
"""

from __future__ import annotations

import statistics
from typing import Callable, Iterable, Iterator, List, Sequence, Tuple

Pair = Tuple[int, int]

NOBODY = -1  # faces the one who pauses
EVERY_PAIR_UP_TO = 16  # ranks; beyond, their pairs are too many and most of them say the same


def rounds(nodes: Sequence[str], together: bool) -> list[list[Pair]]:
    """`nodes` has the name of each rank's node; a round is a list of pairs, the lower rank first.

    Pairs of one round have no rank in common. Unless they run `together`, each has a round of its own.
    """
    if len(nodes) <= EVERY_PAIR_UP_TO:
        planned = list(tournament(range(len(nodes))))
    else:
        planned = [*tournament(leaders(nodes)), *neighbours(nodes)]
    return planned if together else [[pair] for pairs in planned for pair in pairs]


def leaders(nodes: Sequence[str]) -> list[int]:
    """The first rank of each node."""
    first: dict[str, int] = {}
    for rank, node in enumerate(nodes):
        first.setdefault(node, rank)
    return sorted(first.values())


def tournament(ranks: Iterable[int]) -> Iterator[list[Pair]]:
    """Everybody meets everybody once, by the circle method: one seat is fixed, the others move on."""
    seats = list(ranks)
    seats += [NOBODY] * (len(seats) % 2)
    half = len(seats) // 2
    for _ in seats[1:]:
        facing = zip(seats[:half], reversed(seats[half:]))
        yield sorted((min(pair), max(pair)) for pair in facing if NOBODY not in pair)
        seats.insert(1, seats.pop())


def neighbours(nodes: Sequence[str]) -> Iterator[list[Pair]]:
    """Inside each node, every rank with the next, in two rounds for all nodes at once."""
    inside: dict[str, list[int]] = {}
    for rank, node in enumerate(nodes):
        inside.setdefault(node, []).append(rank)
    for start in (0, 1):
        pairs = [pair for ranks in inside.values() for pair in zip(ranks[start::2], ranks[start + 1 :: 2])]
        if pairs:
            yield sorted(pairs)


Times = Tuple[int, List[float]]

# Every link has its turn several times, far apart: a disturbance that passes spoils one turn of a link.
TURNS_PER_LINK = 3
WARM_UP_REPETITIONS = 2  # of each size in each turn; the very first opens connections
LEAST_REPETITIONS = 2  # in a turn; six in all are the fewest whose range is a 95 % interval of the median
MOST_REPETITIONS = 70  # in a turn
GIVE_UP_FACTOR = 10  # times the seconds of a turn: a size that would take longer is left out


def repeat_by_size(
    sizes: Sequence[int],
    seconds: float,
    operation: Callable[[int], Callable[[], None]],
    agree: Callable[[int], int],
    clock: Callable[[], float],
) -> Iterator[Times]:
    """Yields (bytes, seconds of each repetition) of one turn, from the smallest size up.

    `operation(size)` gives a function that does it once. `agree(number)` gives to every rank the number
    that the one who decides has: repetitions must be the same on both sides of a link.
    """
    known: list[tuple[int, float]] = []
    for size in sorted(sizes):
        fewest = (WARM_UP_REPETITIONS + LEAST_REPETITIONS) * expected_seconds(known, size)
        if not agree(int(fewest <= GIVE_UP_FACTOR * seconds)):
            return
        once = operation(size)
        warm = min(seconds_of(once, clock) for _ in range(WARM_UP_REPETITIONS))
        wanted = int(seconds / len(sizes) / max(warm, 1e-9))
        times = [
            seconds_of(once, clock)
            for _ in range(agree(max(LEAST_REPETITIONS, min(MOST_REPETITIONS, wanted))))
        ]
        known.append((size, statistics.median(times)))
        yield size, times


def seconds_of(once: Callable[[], None], clock: Callable[[], float]) -> float:
    began = clock()
    once()
    return clock() - began


def expected_seconds(known: Sequence[tuple[int, float]], size: int) -> float:
    """Seconds of the next size, on the line through the last two that were measured."""
    if len(known) < 2:
        return known[-1][1] if known else 0.0
    (less, quick), (more, slow) = known[-2:]
    return slow + max(0.0, slow - quick) / (more - less) * (size - more)
