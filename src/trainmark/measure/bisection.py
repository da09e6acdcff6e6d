"""Bisection of a list, and delta debugging of a set, whose items are judged with some risk of error.

An item may also not be judged at all: it is skipped. When a comparison is decided, and what its error may be,
is in BisectionRules.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise
from math import ceil, log, log2

from trainmark.measure.ab import ABResult, ABVerdict, judge, nearer_level
from trainmark.view.message import Message, _, joined


class ChangeSide(str, Enum):
    """On which side of the change an item lies; SKIPPED where that is not known."""

    GOOD = "good"
    BAD = "bad"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class BisectionSearch:
    """Items 0 (good) to `length - 1` (bad), and which side each item asked about so far was on.

    The whole state is `answers`: a search read back from disk goes on where it stopped.
    """

    length: int
    answers: Mapping[int, ChangeSide] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.length < 2:
            raise ValueError("a search needs a good and a bad item")

    @property
    def first_bad(self) -> int:
        return min(
            (item for item, side in self.answers.items() if side is ChangeSide.BAD), default=self.length - 1
        )

    @property
    def last_good(self) -> int:
        """The last good item before the first bad one: a good item after it is no bound."""
        items = (
            item for item, side in self.answers.items() if side is ChangeSide.GOOD and item < self.first_bad
        )
        return max(items, default=0)

    @property
    def candidates(self) -> list[int]:
        """Return the items between the last good and the first bad one that may still be asked about."""
        between = range(self.last_good + 1, self.first_bad)
        return [item for item in between if item not in self.answers]

    @property
    def suspects(self) -> range:
        """The items of which one made the change: a single one, unless its neighbours were skipped."""
        return range(self.last_good + 1, self.first_bad + 1)

    @property
    def next_item(self) -> int | None:
        """Return the item to ask about; None at the end.

        The middle first. With each skip the place moves towards the ends, in the order ½, ¼, ¾, ⅛, ⅞, …:
        builds that fail together lie side by side, and the way out of a block of them is short.
        """
        candidates = self.candidates
        if not candidates:
            return None
        skips = sum(
            side is ChangeSide.SKIPPED and item in self.suspects for item, side in self.answers.items()
        )
        aim = self.last_good + place_after(skips) * (self.first_bad - self.last_good)
        return min(candidates, key=lambda item: (abs(item - aim), item))

    @property
    def decisions_left(self) -> int:
        """How often the interval must still be halved; 1 only where one candidate is left."""
        return ceil(log2(len(self.candidates) + 1))

    def answered(self, item: int, side: ChangeSide) -> BisectionSearch:
        """Return the search with one more answer."""
        return BisectionSearch(self.length, {**self.answers, item: side})


def place_after(skips: int) -> float:
    """Return where in the interval to ask after so many skips: ½, ¼, ¾, ⅛, ⅞, 1/16, …"""
    near = 0.5 ** ((skips + 1) // 2 + 1)
    return 1 - near if skips and skips % 2 == 0 else near


def decision_error(budget: float, decisions_left: int) -> float:
    """Return the error that the next decision may have: an equal share of what is left of the budget.

    By the union bound, a bisection takes a wrong half with at most the probability that all its decisions
    together may spend. A split off the middle, after skips, leaves more decisions than were counted on; as
    every share but that of the very last decision leaves something, the budget is never overspent.
    """
    return budget / max(1, decisions_left)


Subset = tuple[int, ...]


@dataclass(frozen=True)
class DeltaDebugging:
    """ddmin (Zeller & Hildebrandt 2002) over differences 0 … `count - 1`.

    `answers` says for each subset of them, applied to the good side, on which side it came out; a subset that
    cannot be run is SKIPPED. They are the whole state. That all of them together are bad is given.
    """

    count: int
    answers: Mapping[Subset, ChangeSide] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ValueError("there is no difference to look into")

    def answered(self, subset: Subset, side: ChangeSide) -> DeltaDebugging:
        """Return the same with one more answer."""
        return DeltaDebugging(self.count, {**self.answers, subset: side})

    @property
    def next_subset(self) -> Subset | None:
        """Return the subset to try; None at the end."""
        return self._walk()[1]

    @property
    def culprits(self) -> Subset:
        """The smallest subset so far that makes the change; at the end, no one of them can be left out."""
        return self._walk()[0]

    @property
    def unresolved(self) -> tuple[Subset, ...]:
        """The subsets of the culprits that could not be judged: the culprits may be fewer."""
        culprits = set(self.culprits)
        return tuple(
            subset
            for subset, side in self.answers.items()
            if side is ChangeSide.SKIPPED and culprits.issuperset(subset)
        )

    def _walk(self) -> tuple[Subset, Subset | None]:
        """Replay the answers: the culprits so far, and the subset that is asked for next."""
        current: Subset = tuple(range(self.count))
        pieces = 2
        while len(current) > 1:
            parts = split_evenly(current, pieces)
            complements = [tuple(item for item in current if item not in part) for part in parts]
            tried: dict[Subset, int] = dict.fromkeys(parts, 2)
            # With two pieces, the complement of one is the other.
            tried |= {rest: max(pieces - 1, 2) for rest in complements if pieces > 2}
            reduced = None
            for subset, next_pieces in tried.items():
                side = self.answers.get(subset)
                if side is None:
                    return current, subset
                if side is ChangeSide.BAD:
                    reduced = subset, next_pieces
                    break
            if reduced is not None:
                current, pieces = reduced
            elif pieces < len(current):
                pieces = min(2 * pieces, len(current))
            else:
                return current, None
        return current, None


def split_evenly(items: Subset, pieces: int) -> list[Subset]:
    """Return consecutive pieces of nearly equal length."""
    bounds = [len(items) * number // pieces for number in range(pieces + 1)]
    return [items[first:last] for first, last in pairwise(bounds) if first < last]


def nth_decision_error(budget: float, number: int) -> float:
    """Return the error of the `number`-th decision, from 1: budget / (number · (number + 1)).

    How many decisions there will be is not known beforehand; these sum to the budget, however many.
    """
    return budget / (number * (number + 1))


MeasuredPairs = tuple[tuple[float, float], ...]
# What stands for the value that one side of a difference does not have.
AS_IN_SUITE, NOT_SET = _("(as in the suite)"), _("(not set)")
MARK = re.compile(rf"({re.escape(AS_IN_SUITE)}|{re.escape(NOT_SET)})")


def setting_words(name: str) -> Message:
    """Return the names of differences with what stands for no value in the reader's language."""
    marks = {str(mark): mark for mark in (AS_IN_SUITE, NOT_SET)}
    return joined([marks.get(piece, piece) for piece in MARK.split(name) if piece], "")


class BisectionFinding(str, Enum):
    FOUND = "found"
    NARROWED = "narrowed"  # several neighbours are left, because what lies between them was skipped
    NO_CHANGE = "no change"  # good and bad do not differ by as much as matters
    UNDECIDED = "undecided"  # good and bad were not distinguished at the limit of pairs
    UNCONFIRMED = "unconfirmed"  # the culprit beside its predecessor does not show the change


@dataclass(frozen=True)
class PairedMeasurement:
    """Interleaved pairs of two sides; `ratio` is the throughput of the second over that of the first.

    A bound that the pairs do not carry yet is None.
    """

    first: str
    second: str
    pairs: MeasuredPairs
    ratio: float
    low: float | None
    high: float | None
    trials: int
    seconds: float
    run: str


@dataclass(frozen=True)
class BisectionStep:
    """One question and its answer. `items` are the places of what was tried: one, or a set of differences.

    What was skipped because it does not run has no pairs, and yet its trials took time.
    """

    items: tuple[int, ...]
    name: str
    side: ChangeSide
    error: float
    preparation: float
    measured: PairedMeasurement | None = None
    reason: str = ""
    failed_trials: int = 0
    failed_seconds: float = 0.0


@dataclass(frozen=True)
class Bisection:
    """`names` are the items from good to bad, or the differences; `notes` what else is known of a culprit."""

    kind: str
    subject: str
    case: str
    unit: str
    names: tuple[str, ...]
    matters: float
    error: float
    finding: BisectionFinding
    reference: PairedMeasurement
    steps: tuple[BisectionStep, ...]
    culprits: tuple[str, ...]
    confirmation: PairedMeasurement | None
    notes: tuple[str, ...] = ()
    preparation: float = 0.0
    command: str = ""

    @property
    def measurements(self) -> tuple[PairedMeasurement, ...]:
        """Every comparison once: a step, or the reference, may be the confirmation as well."""
        ended = [step.measured for step in self.steps]
        parts = (part for part in (self.reference, *ended, self.confirmation) if part is not None)
        return tuple({part.run: part for part in parts}.values())

    @property
    def trials(self) -> int:
        failed = sum(step.failed_trials for step in self.steps)
        return failed + sum(part.trials for part in self.measurements)

    @property
    def seconds(self) -> float:
        """Of the trials; `preparation` is what installs, checkouts and set-up took."""
        failed = sum(step.failed_seconds for step in self.steps)
        return failed + sum(part.seconds for part in self.measurements)

    @property
    def share(self) -> float | None:
        """How much of the whole change, in logarithms, the culprit makes; None where there is no culprit."""
        if self.confirmation is None or self.reference.ratio == 1:
            return None
        return log(self.confirmation.ratio) / log(self.reference.ratio)


# Of the whole error: that good and bad differ by less than their comparison says.
REFERENCE_SHARE = 0.2
# `nearer_level` holds its error for levels up to a quarter of the change away from where they are expected.
TOLERANCE = 0.75
# Of the change between good and bad: the least that must be certain before the search. Simulated bisections
# of 8 and of 200 items (benchmarks/bisection.py) cost least between 0.5 and 0.6.
ENOUGH = 0.6
# Of the culprit's own change: the least that must be certain before it is reported.
KNOWN_SIZE = 0.7


@dataclass(frozen=True)
class BisectionRules:
    """`error` of a whole bisection, the smallest change that `matters`, and the `most` pairs of a step."""

    matters: float = 0.01
    error: float = 0.05
    most: int = 60

    @property
    def reference_error(self) -> float:
        return REFERENCE_SHARE * self.error

    @property
    def search_error(self) -> float:
        return (1 - REFERENCE_SHARE) * self.error

    def reference(self, pairs: MeasuredPairs) -> ABResult:
        """Compare good with bad."""
        return judge(pairs, matters=self.matters, error=self.reference_error)

    def reference_decided(self, pairs: MeasuredPairs) -> bool:
        """Whether good and bad are alike, or so surely apart that an item between them can be placed."""
        return _is_sized(self.reference(pairs), ENOUGH)

    def change(self, judgement: ABResult) -> float | None:
        """Return the ratio of the levels that `nearer_level` is to tell apart; None where none is certain.

        It is taken so small that the bad level lies within the tolerance of `nearer_level`, or further away.
        """
        if not judgement.verdict.is_change:
            return None
        size = min(abs(math.log(judgement.ratio)), certain_change(judgement) / TOLERANCE)
        return math.exp(math.copysign(size, math.log(judgement.ratio)))

    def confirmation_decided(self, pairs: MeasuredPairs) -> bool:
        """Whether the culprit makes no change, or one whose size is known to about a half."""
        judgement = judge(pairs, matters=self.matters, error=self.error)
        is_bounded = math.isfinite(judgement.high) and judgement.low > 0
        return _is_sized(judgement, KNOWN_SIZE) and (is_bounded or not judgement.verdict.is_change)


def _is_sized(judgement: ABResult, share: float) -> bool:
    """Whether there is no change, or so large a share of it is certain."""
    if judgement.verdict.is_change:
        return certain_change(judgement) >= share * abs(math.log(judgement.ratio))
    return judgement.verdict is ABVerdict.SAME


def certain_change(judgement: ABResult) -> float:
    """Return the logarithm of the smallest change that the interval allows; 0 where it allows none."""
    if judgement.verdict is ABVerdict.SLOWER:
        return max(0.0, -math.log(judgement.high))
    return max(0.0, math.log(judgement.low)) if judgement.low > 0 else 0.0


def side_of(pairs: MeasuredPairs, change: float, error: float) -> ChangeSide | None:
    """Place an item that was measured beside the good one; None where more pairs are needed."""
    verdict = nearer_level(pairs, change, error)
    if verdict is ABVerdict.UNDECIDED:
        return None
    return ChangeSide.GOOD if verdict is ABVerdict.SAME else ChangeSide.BAD
