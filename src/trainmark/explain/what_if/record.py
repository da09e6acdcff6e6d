"""The record of what-ifs that were made, predictions beside the truth, and the intervals that follow."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from math import exp, log, sqrt
from pathlib import Path
from typing import NamedTuple

import yaml

from trainmark.base.typed_json import decode
from trainmark.store.files import LocalRecords
from trainmark.view.message import Message, _

RECORD = Path(__file__).with_name("record.yaml")
CONFIDENCE = 0.9
LEAST_ENTRIES = 4
# Before anything was verified: a guess, about twice what simulators of whole clusters are off by.
PRIOR = log(1.35)
# No interval is narrower than trials of one case differ.
NOISE = 0.02


@dataclass(frozen=True)
class VerifiedChange:
    """One verified what-if, times in seconds of a step of as many samples as before the change.

    `low` and `high` are the interval of what was measured; `kind` is that of the device: cuda or cpu. `first`
    is what was predicted before this very case showed that the rule is wrong, and mended it. In a predicted
    step that `waits_for_host` the device waits for launches.
    """

    change: str
    workload: str
    setting: str
    framework: str
    device: str
    kind: str
    before: float
    predicted: float
    measured: float
    low: float
    high: float
    trials: int
    date: str
    version: str
    first: float | None = None
    waits_for_host: bool = False

    @property
    def error(self) -> float:
        """Predicted ÷ measured − 1."""
        return self.predicted / self.measured - 1

    @property
    def surprise(self) -> float:
        """Logarithm of measured ÷ predicted, before anything was learnt from this case."""
        return log(self.measured / (self.first or self.predicted))


class Bounds(NamedTuple):
    """Factors of a prediction between which the truth is expected, and what that rests on."""

    low: float
    high: float
    basis: str


@cache
def published() -> tuple[VerifiedChange, ...]:
    """Return the record that is published with this version."""
    plain = yaml.safe_load(RECORD.read_text(encoding="utf-8")) or []
    return tuple(decode(VerifiedChange, entry) for entry in plain)


def interval(
    change: str, kind: str, entries: Sequence[VerifiedChange], waits_for_host: bool = False
) -> Bounds:
    """Return the 90 % interval for the next error of this change, by Student's t over earlier ones.

    Of this change on this kind of device, else of all changes on it, else of all changes anywhere; each needs
    four entries. Steps that wait for the host are a record of their own, whatever the change: they take as
    long as the host, which differs by a fifth from one start of a program to the next. A rule that a case has
    mended may be as wrong elsewhere: there the first prediction counts. The factors enclose 1: a record of
    errors to one side does not move the prediction itself.
    """
    here = [entry for entry in entries if entry.kind == kind]
    alike = [entry for entry in here if entry.waits_for_host == waits_for_host]
    if waits_for_host:
        own = alike
        of_own = _(
            "{count} verified predictions of steps that wait for the host, on {kind}",
            count=len(own),
            kind=kind,
        )
    else:
        own = [entry for entry in alike if entry.change == change]
        of_own = _("{count} verified predictions of it on {kind}", count=len(own), kind=kind)
    of_here = _("{count} verified predictions of all changes on {kind}", count=len(here), kind=kind)
    pools = ((own, of_own), (here, of_here), (list(entries), _anywhere(kind, entries)))
    for pool, basis in pools:
        if len(pool) >= LEAST_ENTRIES:
            low, high = error_bounds([entry.surprise for entry in pool])
            return Bounds(exp(min(low, 0.0)), exp(max(high, 0.0)), basis)
    basis = _("no record: fewer than 4 what-ifs were verified, the interval is a guess")
    return Bounds(exp(-PRIOR), exp(PRIOR), basis)


def _anywhere(kind: str, entries: Sequence[VerifiedChange]) -> Message:
    """Say where all of them were made: an interval from other devices says little of this one."""
    kinds = sorted({entry.kind for entry in entries})
    if kind in kinds:
        return _("{count} verified predictions of all changes on any device", count=len(entries))
    return _(
        "{count} verified predictions of all changes on {kinds}: on {kind} none was verified",
        count=len(entries),
        kinds=" and ".join(kinds),
        kind=kind,
    )


def error_bounds(errors: Sequence[float], confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Return where the next of these errors will lie: mean ± t·s·√(1 + 1/n)."""
    n = len(errors)
    spread = sqrt(statistics.variance(errors) + NOISE**2)
    half = t_quantile((1 + confidence) / 2, n - 1) * spread * sqrt(1 + 1 / n)
    mean = statistics.fmean(errors)
    return mean - half, mean + half


def t_quantile(probability: float, freedom: int) -> float:
    """Return a quantile of Student's t by the expansion around the normal one (Abramowitz & Stegun 26.7.5).

    Within 1.5 % from three degrees of freedom on, at probabilities up to 0.975.
    """
    z = statistics.NormalDist().inv_cdf(probability)
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return float(sum(term / freedom**power for power, term in enumerate(terms)))


class RecordSummary(NamedTuple):
    """Absolute errors of a record, as shares."""

    entries: int
    median: float
    largest: float


def summary(entries: Sequence[VerifiedChange]) -> RecordSummary | None:
    errors = [abs(entry.error) for entry in entries]
    return RecordSummary(len(errors), statistics.median(errors), max(errors)) if errors else None


def table(entries: Iterable[VerifiedChange]) -> str:
    """Return the record as a table in Markdown."""
    lines = [
        "| change | workload | framework | device | before | predicted | measured | error | date |",
        "|---|---|---|---|--:|--:|--:|--:|---|",
    ]
    for entry in entries:
        measured = f"{_ms(entry.measured)} [{_ms(entry.low)}, {_ms(entry.high)}]"
        cells = (
            entry.change,
            f"{entry.workload} {entry.setting}".strip(),
            entry.framework,
            entry.device,
            f"{_ms(entry.before)} ms",
            _ms(entry.predicted),
            measured,
            f"{100 * entry.error:+.1f} %",
            f"{entry.date} ({entry.version})",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.4g}"


VERIFIED = LocalRecords("explain", VerifiedChange)
NAME = "what-if"


def known_record() -> tuple[VerifiedChange, ...]:
    """Return every verified what-if that is known here; predictions take their intervals from these."""
    own = VERIFIED.read(NAME)
    return (*(entry for entry in published() if entry not in own), *own)


def append_verified(entries: Sequence[VerifiedChange]) -> None:
    """Add to this machine's record, in place of earlier entries of the same case, day and version."""
    new = {_identity(entry) for entry in entries}
    VERIFIED.replace(NAME, lambda entry: _identity(entry) in new, *entries)


def _identity(entry: VerifiedChange) -> tuple[str, ...]:
    return (
        *(entry.change, entry.workload, entry.setting, entry.framework),
        *(entry.device, entry.date, entry.version),
    )
