"""How often an operation is repeated, and when a size is given up: alike for a pair and for all ranks.

Runs inside every framework's interpreter: standard library only, Python 3.7+.
"""

from __future__ import annotations

import statistics
from typing import Callable, Iterator, List, Sequence, Tuple

Times = Tuple[int, List[float]]

# Every link has its turn several times, far apart: a disturbance that passes spoils one turn of a link.
TURNS = 3
WARM_UP = 2  # of each size in each turn; the very first opens connections
LEAST = 2  # in a turn; six in all are the fewest whose range is a 95 % interval of the median
MOST = 70  # in a turn
PATIENCE = 10  # times the seconds of a turn: a size that would take longer is left out


def by_size(
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
        fewest = (WARM_UP + LEAST) * expected(known, size)
        if not agree(int(fewest <= PATIENCE * seconds)):
            return
        once = operation(size)
        warm = min(timed(once, clock) for _ in range(WARM_UP))
        wanted = int(seconds / len(sizes) / max(warm, 1e-9))
        times = [timed(once, clock) for _ in range(agree(max(LEAST, min(MOST, wanted))))]
        known.append((size, statistics.median(times)))
        yield size, times


def timed(once: Callable[[], None], clock: Callable[[], float]) -> float:
    began = clock()
    once()
    return clock() - began


def expected(known: Sequence[tuple[int, float]], size: int) -> float:
    """Seconds of the next size, on the line through the last two that were measured."""
    if len(known) < 2:
        return known[-1][1] if known else 0.0
    (less, quick), (more, slow) = known[-2:]
    return slow + max(0.0, slow - quick) / (more - less) * (size - more)
