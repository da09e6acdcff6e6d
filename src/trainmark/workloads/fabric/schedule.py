"""Who talks to whom, and when: rounds of pairs in which no rank has two partners at a time.

Runs inside every framework's interpreter: standard library only, Python 3.7+.
"""

from __future__ import annotations

from typing import Iterable, Iterator, Sequence, Tuple

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
