"""Two sets of results against each other, case by case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from trainmark.measure.figure import Interval, Ratio, Result
from trainmark.measure.key import Key
from trainmark.measure.result.verdict import Reliability, result_verdict
from trainmark.measure.statistics.intervals import CONFIDENCE, ratio_interval

# A comparison is about what changes these; all else makes another case.
MAY_DIFFER = ("framework_version", "device", "threads")


@dataclass(frozen=True)
class Comparison:
    """One case on both sides; `ratio` is after ÷ before, `differs` names the parts of the key that differ."""

    before: Result
    after: Result
    ratio: Ratio
    differs: tuple[str, ...]

    @property
    def changed(self) -> bool:
        """Whether the ratio surely differs from 1."""
        bounds = _sure(self.ratio.interval)
        return bounds is not None and not bounds.low <= 1 <= bounds.high

    @property
    def unreliable(self) -> tuple[bool, bool]:
        """Which sides are not to be relied on, so that nothing certain follows from them."""
        before, after = (result_verdict(side).reliability for side in (self.before, self.after))
        return before is Reliability.UNRELIABLE, after is Reliability.UNRELIABLE


def compare(before: Sequence[Result], after: Sequence[Result]) -> list[Comparison]:
    """Every case that both sides hold, in the order of `before`; `unmatched` gives the others.

    A key that both sides hold exactly is compared with itself alone, any other with each result of the
    same case on the other side that has no exact partner either. Rates in different units are not compared:
    tokens are not sequences times a length where padding is skipped.
    """
    old_keys, new_keys = {r.key for r in before}, {r.key for r in after}
    exact = {r.key: r for r in after if r.key in old_keys}
    loose: dict[Key, list[Result]] = {}
    for result in after:
        if result.key not in exact:
            loose.setdefault(_case(result.key), []).append(result)
    comparisons: list[Comparison] = []
    for old in before:
        partners = [exact[old.key]] if old.key in new_keys else loose.get(_case(old.key), [])
        comparisons += [_comparison(old, new) for new in partners if new.unit == old.unit]
    return comparisons


def unmatched(before: Sequence[Result], after: Sequence[Result]) -> tuple[list[Key], list[Key]]:
    """The keys that `compare` left out: of the first side, and of the second."""
    pairs = compare(before, after)
    old, new = {pair.before.key for pair in pairs}, {pair.after.key for pair in pairs}
    return [r.key for r in before if r.key not in old], [r.key for r in after if r.key not in new]


def fails_below(comparison: Comparison, threshold: float, unsure: bool = False) -> bool:
    """Whether the ratio is under the threshold and surely below 1.

    `unsure` is taken where too few trials, or a side that is not to be relied on, leave it open.
    """
    if _sure(comparison.ratio.interval) is None or cannot_be_judged(comparison, threshold):
        return comparison.ratio.value < threshold and unsure
    return _is_below(comparison, threshold)


def cannot_be_judged(comparison: Comparison, threshold: float) -> bool:
    """Whether it would fail, but for a side that is not to be relied on."""
    return any(comparison.unreliable) and _is_below(comparison, threshold)


def _is_below(comparison: Comparison, threshold: float) -> bool:
    bounds = _sure(comparison.ratio.interval)
    return comparison.ratio.value < threshold and bounds is not None and bounds.high < 1


def _comparison(before: Result, after: Result) -> Comparison:
    ratio = Ratio(after.throughput / before.throughput, ratio_interval(after.trials, before.trials))
    differs = tuple(name for name in MAY_DIFFER if getattr(before.key, name) != getattr(after.key, name))
    return Comparison(before, after, ratio, differs)


def _case(key: Key) -> Key:
    """Threads make another case of a built-in workload; one's own program has them among its settings."""
    threads = key.threads if key.framework else None
    return replace(key, framework_version=None, device=None, threads=threads)


def _sure(interval: Interval | None) -> Interval | None:
    return interval if interval is not None and interval.confidence >= CONFIDENCE else None
