"""A/B comparison by interleaved pairs of trials, looked at after each pair: slower, faster, or the same."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from trainmark.sequential.evidence import evidence_above_zero, first_at_least

Pairs = Sequence[tuple[float, float]]  # (throughput of A, throughput of B), taken side by side

HALVINGS = 50  # of the search for a limit: far below any rounding of a report
MOST_WALSH = 400  # differences whose pairwise means are formed; above, the plain median is as good


class Verdict(str, Enum):
    """What B is against A."""

    SLOWER = "slower"
    FASTER = "faster"
    SAME = "same"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Judgement:
    """B ÷ A with an interval that holds at every look together; `pairs` is how many the verdict took.

    The limits are 0 and infinity until the pairs suffice for one.
    """

    verdict: Verdict
    ratio: float
    low: float
    high: float
    pairs: int
    error: float


def judge(pairs: Pairs, *, matters: float = 0.01, error: float = 0.05) -> Judgement:
    """Compare the throughput of B with A's; a verdict, once reached, is wrong with probability ≤ `error`.

    SLOWER and FASTER: the ratio lies certainly beyond 1 − `matters`, or its reciprocal. SAME: certainly
    between them. Further pairs do not revoke a verdict, so that looking after each is free.
    """
    if not 0 < matters < 1 or not 0 < error < 1:
        raise ValueError("matters and error are shares between 0 and 1")
    differences = log_ratios(pairs)
    verdict, count = first_verdict(differences, matters, error)
    if not differences:
        return Judgement(verdict, 1.0, 0.0, math.inf, 0, error)
    centre = hodges_lehmann(differences)
    low = -_upper_limit([-difference for difference in differences], -centre, 2 / error)
    high = _upper_limit(differences, centre, 2 / error)
    return Judgement(verdict, math.exp(centre), math.exp(low), math.exp(high), count, error)


def side(pairs: Pairs, change: float, error: float) -> Verdict:
    """Tell which of two levels B is on: A's own (SAME), or `change` times A's (SLOWER or FASTER).

    Either answer is wrong with probability ≤ `error`, also where the level lies up to a quarter of the change
    off the one expected. UNDECIDED: go on.
    """
    if not change > 0 or change == 1 or not 0 < error < 1:
        raise ValueError("change is the ratio of the two levels and not 1; error is between 0 and 1")
    distance = math.log(change)
    towards = math.copysign(1.0, distance)
    # Positive: towards the changed level, whichever way that lies.
    moves = [towards * difference for difference in log_ratios(pairs)]
    quarter = abs(distance) / 4
    changed = _first(moves, quarter, 1 / error)
    unchanged = _first([-move for move in moves], -3 * quarter, 1 / error)
    if changed is None and unchanged is None:
        return Verdict.UNDECIDED
    if changed == unchanged:  # between the levels: the nearer one
        is_changed = hodges_lehmann(moves) > 2 * quarter
    else:
        is_changed = unchanged is None or (changed is not None and changed < unchanged)
    if not is_changed:
        return Verdict.SAME
    return Verdict.SLOWER if change < 1 else Verdict.FASTER


def first_verdict(differences: Sequence[float], matters: float, error: float) -> tuple[Verdict, int]:
    """Return the verdict that was reached first, and the number of pairs it took."""
    beyond, threshold = -math.log1p(-matters), 2 / error
    mirrored = [-difference for difference in differences]
    slower = _first(mirrored, beyond, threshold)
    faster = _first(differences, beyond, threshold)
    not_slower = _first(differences, -beyond, threshold)
    not_faster = _first(mirrored, -beyond, threshold)
    same = None if not_slower is None or not_faster is None else max(not_slower, not_faster)
    reached = [
        (count, verdict)
        for verdict, count in ((Verdict.SLOWER, slower), (Verdict.FASTER, faster), (Verdict.SAME, same))
        if count is not None
    ]
    if not reached:
        return Verdict.UNDECIDED, len(differences)
    count, verdict = min(reached, key=lambda pair: pair[0])
    return verdict, count


def log_ratios(pairs: Pairs) -> list[float]:
    """Return log(B ÷ A) of each pair; throughputs are positive and finite."""
    for pair in pairs:
        if not all(math.isfinite(value) and value > 0 for value in pair):
            raise ValueError(f"{pair} is not a pair of throughputs")
    return [math.log(b / a) for a, b in pairs]


def hodges_lehmann(differences: Sequence[float]) -> float:
    """Return the median of all pairwise means (Hodges & Lehmann 1963): the centre of a symmetric sample."""
    if len(differences) > MOST_WALSH:
        return statistics.median(differences)
    return statistics.median(
        (first + second) / 2 for index, first in enumerate(differences) for second in differences[index:]
    )


def _first(differences: Sequence[float], level: float, threshold: float) -> int | None:
    """Return after how many differences it was certain that they lie above `level`."""
    return first_at_least(evidence_above_zero([difference - level for difference in differences]), threshold)


def _upper_limit(differences: Sequence[float], centre: float, threshold: float) -> float:
    """Return the least level that the differences certainly lie below; infinity where there is none yet."""

    def below(level: float) -> bool:
        return _first([-difference for difference in differences], -level, threshold) is not None

    spread = max(differences) - min(differences)
    outside = max(differences) + 10 * spread + 1e-9
    if not below(outside):
        return math.inf
    inside = centre
    for _ in range(HALVINGS):
        middle = (inside + outside) / 2
        inside, outside = (inside, middle) if below(middle) else (middle, outside)
    return outside
