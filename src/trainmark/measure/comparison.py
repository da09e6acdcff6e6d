"""Results compared: two sets case by case, frameworks as shares of the best, few devices with many."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from enum import Enum

from trainmark.measure.figure import ONE, Interval, Ratio, Result
from trainmark.measure.key import Key
from trainmark.measure.result import Reliability, result_verdict
from trainmark.measure.statistics import CONFIDENCE, ratio_interval
from trainmark.measure.utilisation import is_fused

# A comparison is about what changes these; all else makes another case.
MAY_DIFFER = ("framework_version", "device", "threads")


@dataclass(frozen=True)
class ResultComparison:
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


def compare_results(before: Sequence[Result], after: Sequence[Result]) -> list[ResultComparison]:
    """Every case that both sides hold, in the order of `before`; `unmatched_keys` gives the others.

    A key that both sides hold exactly is compared with itself alone, any other with each result of the
    same case on the other side that has no exact partner either. Rates in different units are not compared:
    tokens are not sequences times a length where padding is skipped.
    """
    old_keys, new_keys = {r.key for r in before}, {r.key for r in after}
    exact = {r.key: r for r in after if r.key in old_keys}
    loose: dict[Key, list[Result]] = {}
    for result in after:
        if result.key not in exact:
            loose.setdefault(_case_of(result.key), []).append(result)
    comparisons: list[ResultComparison] = []
    for old in before:
        partners = [exact[old.key]] if old.key in new_keys else loose.get(_case_of(old.key), [])
        comparisons += [_comparison(old, new) for new in partners if new.unit == old.unit]
    return comparisons


def unmatched_keys(before: Sequence[Result], after: Sequence[Result]) -> tuple[list[Key], list[Key]]:
    """The keys that `compare_results` left out: of the first side, and of the second."""
    pairs = compare_results(before, after)
    old, new = {pair.before.key for pair in pairs}, {pair.after.key for pair in pairs}
    return [r.key for r in before if r.key not in old], [r.key for r in after if r.key not in new]


def fails_below(comparison: ResultComparison, threshold: float, unsure: bool = False) -> bool:
    """Whether the ratio is under the threshold and surely below 1.

    `unsure` is taken where too few trials, or a side that is not to be relied on, leave it open.
    """
    if _sure(comparison.ratio.interval) is None or cannot_be_judged(comparison, threshold):
        return comparison.ratio.value < threshold and unsure
    return _is_below(comparison, threshold)


def cannot_be_judged(comparison: ResultComparison, threshold: float) -> bool:
    """Whether it would fail, but for a side that is not to be relied on."""
    return any(comparison.unreliable) and _is_below(comparison, threshold)


def _is_below(comparison: ResultComparison, threshold: float) -> bool:
    bounds = _sure(comparison.ratio.interval)
    return comparison.ratio.value < threshold and bounds is not None and bounds.high < 1


def result_ratio(result: Result, base: Result) -> Ratio:
    return Ratio(result.throughput / base.throughput, ratio_interval(result.trials, base.trials))


def _comparison(before: Result, after: Result) -> ResultComparison:
    differs = tuple(name for name in MAY_DIFFER if getattr(before.key, name) != getattr(after.key, name))
    return ResultComparison(before, after, result_ratio(after, before), differs)


def _case_of(key: Key) -> Key:
    """Threads make another case of a built-in workload; one's own program has them among its settings."""
    threads = key.threads if key.framework else None
    return replace(key, framework_version=None, device=None, threads=threads)


def _sure(interval: Interval | None) -> Interval | None:
    return interval if interval is not None and interval.confidence >= CONFIDENCE else None


@dataclass(frozen=True)
class ComparedFramework:
    """One result; `share` is its throughput ÷ that of the best at its topology.

    None where no other framework ran at that topology: the best of one says nothing.
    """

    result: Result
    share: Ratio | None


@dataclass(frozen=True)
class FrameworkComparison:
    """One case in two frameworks or more, the fastest first at each topology.

    `key` is what they share: framework, version, layout and compiler may differ, for not every framework has
    both layouts, and each compiles in its own way; all else must agree. It says one device, whatever the
    entrants have. Our own fused step is no framework's.
    """

    key: Key
    entrants: tuple[ComparedFramework, ...]

    @property
    def frameworks(self) -> tuple[str | None, ...]:
        return tuple(dict.fromkeys(entrant.result.key.framework for entrant in self.entrants))


def framework_comparisons(results: Sequence[Result]) -> tuple[FrameworkComparison, ...]:
    """In the order in which their first results appear; what one framework ran alone is in none.

    Results in different units, tokens and sequences, are never in one.
    """
    cases: dict[tuple[Key, str], list[Result]] = {}
    for result in results:
        if result.key.framework is not None and not is_fused(result.key):
            cases.setdefault((_shared_key(result.key), result.unit), []).append(result)
    return tuple(
        FrameworkComparison(key, _entrants(case)) for (key, _), case in cases.items() if _frameworks(case) > 1
    )


def _entrants(case: Sequence[Result]) -> tuple[ComparedFramework, ...]:
    topologies: dict[tuple[int, int], list[Result]] = {}
    for result in case:
        topologies.setdefault((result.key.devices, result.key.nodes), []).append(result)
    compared: list[ComparedFramework] = []
    for _, rivals in sorted(topologies.items()):
        best, *others = sorted(rivals, key=lambda result: -result.throughput)
        contested = _frameworks(rivals) > 1
        compared.append(ComparedFramework(best, ONE if contested else None))
        compared += [ComparedFramework(r, result_ratio(r, best) if contested else None) for r in others]
    return tuple(compared)


def _shared_key(key: Key) -> Key:
    alone = replace(key, nodes=1, devices_per_node=1)
    return replace(alone, framework=None, framework_version=None, layout=None, compiler=None)


def _frameworks(results: Sequence[Result]) -> int:
    return len({result.key.framework for result in results})


class ScalingKind(str, Enum):
    """What stays the same while devices are added: the batch of a device, or that of all together."""

    WEAK = "weak"
    STRONG = "strong"


@dataclass(frozen=True)
class ScalingLoss:
    """The shares of linear scaling that are lost; with the efficiency they add up to one.

    A negative share is a gain: the part takes less time of a sample than on the fewest devices.
    """

    communication: float
    straggling: float
    data: float
    compute: float
    other: float


@dataclass(frozen=True)
class ScalingPoint:
    """One result against that of the fewest devices; `loss` is None where either has no breakdown."""

    result: Result
    speedup: Ratio
    efficiency: Ratio
    loss: ScalingLoss | None


@dataclass(frozen=True)
class ScalingSeries:
    """Results that differ in topology alone, or in the batch of a device as well where `global_batch` stays.

    The first point is the baseline: the fewest devices that were measured, not always one.
    """

    kind: ScalingKind
    key: Key
    global_batch: int | None
    points: tuple[ScalingPoint, ...]

    @property
    def baseline(self) -> Result:
        return self.points[0].result


def scaling(results: Sequence[Result]) -> tuple[ScalingSeries, ...]:
    """Weak series, then strong ones, in order of appearance; what ran on one number of devices is in none."""
    weak: dict[tuple[Key, int | None], list[Result]] = {}
    strong: dict[tuple[Key, int | None], list[Result]] = {}
    for result in results:
        alone = replace(result.key, nodes=1, devices_per_node=1)
        weak.setdefault((alone, None), []).append(result)
        if result.key.batch_per_device is not None:
            together = result.key.batch_per_device * result.key.devices
            strong.setdefault((replace(alone, batch_per_device=None), together), []).append(result)
    return (*_series(ScalingKind.WEAK, weak), *_series(ScalingKind.STRONG, strong))


def _series(kind: ScalingKind, groups: dict[tuple[Key, int | None], list[Result]]) -> Iterable[ScalingSeries]:
    for (key, global_batch), members in groups.items():
        if len({member.key.devices for member in members}) > 1:
            ordered = sorted(members, key=lambda result: (result.key.devices, result.key.nodes))
            yield ScalingSeries(
                kind, key, global_batch, tuple(_point(result, ordered[0]) for result in ordered)
            )


def _point(result: Result, baseline: Result) -> ScalingPoint:
    if result is baseline:
        return ScalingPoint(result, ONE, ONE, None)
    speedup = result_ratio(result, baseline)
    share = baseline.key.devices / result.key.devices
    efficiency = speedup.mapped(lambda ratio: ratio * share)
    return ScalingPoint(result, speedup, efficiency, _loss(result, baseline, efficiency.value))


def _loss(result: Result, baseline: Result, efficiency: float) -> ScalingLoss | None:
    """What each part takes of a sample's device time, less what it took of it at the baseline.

    A sample takes 1 device-second ÷ (throughput of a device), at the baseline `efficiency` times as much.
    """
    if result.breakdown is None or baseline.breakdown is None:
        return None
    now, then = result.breakdown.parts, baseline.breakdown.parts
    parts = (part.name for part in fields(ScalingLoss))
    return ScalingLoss(**{part: getattr(now, part) - efficiency * getattr(then, part) for part in parts})
