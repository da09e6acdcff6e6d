"""The outcome of a bisection: its steps, its culprit, the size of the change and what it cost."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from math import log

from trainmark.sequential.search import Side

Pairs = tuple[tuple[float, float], ...]


class Finding(str, Enum):
    FOUND = "found"
    NARROWED = "narrowed"  # several neighbours are left, because what lies between them was skipped
    NO_CHANGE = "no change"  # good and bad do not differ by as much as matters
    UNDECIDED = "undecided"  # good and bad were not distinguished at the limit of pairs
    UNCONFIRMED = "unconfirmed"  # the culprit beside its predecessor does not show the change


@dataclass(frozen=True)
class Measured:
    """Interleaved pairs of two sides; `ratio` is the throughput of the second over that of the first.

    A bound that the pairs do not carry yet is None.
    """

    first: str
    second: str
    pairs: Pairs
    ratio: float
    low: float | None
    high: float | None
    trials: int
    seconds: float
    run: str


@dataclass(frozen=True)
class Step:
    """One question and its answer. `items` are the places of what was tried: one, or a set of differences.

    What was skipped because it does not run has no pairs, and yet its trials took time.
    """

    items: tuple[int, ...]
    name: str
    side: Side
    error: float
    preparation: float
    measured: Measured | None = None
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
    finding: Finding
    reference: Measured
    steps: tuple[Step, ...]
    culprits: tuple[str, ...]
    confirmation: Measured | None
    notes: tuple[str, ...] = ()
    preparation: float = 0.0
    command: str = ""

    @property
    def measurements(self) -> tuple[Measured, ...]:
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
