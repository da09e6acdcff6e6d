"""Frameworks against each other: the same case in each, as a share of the best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from trainmark.measure.figure import Interval, Ratio, Result
from trainmark.measure.key import Key
from trainmark.measure.result.light import is_fused
from trainmark.measure.statistics.intervals import ratio_interval


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
            cases.setdefault((_shared(result.key), result.unit), []).append(result)
    return tuple(
        FrameworkComparison(key, _entrants(case)) for (key, _), case in cases.items() if _frameworks(case) > 1
    )


def _entrants(case: Sequence[Result]) -> tuple[ComparedFramework, ...]:
    topologies: dict[tuple[int, int], list[Result]] = {}
    for result in case:
        topologies.setdefault((result.key.devices, result.key.nodes), []).append(result)
    compared: list[ComparedFramework] = []
    for _, rivals in sorted(topologies.items()):
        ranked = sorted(rivals, key=lambda result: -result.throughput)
        contested = _frameworks(rivals) > 1
        compared += [
            ComparedFramework(result, _share(result, ranked[0]) if contested else None) for result in ranked
        ]
    return tuple(compared)


def _share(result: Result, best: Result) -> Ratio:
    if result is best:
        return Ratio(1.0, Interval(1.0, 1.0, 1.0))
    return Ratio(result.throughput / best.throughput, ratio_interval(result.trials, best.trials))


def _shared(key: Key) -> Key:
    alone = replace(key, nodes=1, devices_per_node=1)
    return replace(alone, framework=None, framework_version=None, layout=None, compiler=None)


def _frameworks(results: Sequence[Result]) -> int:
    return len({result.key.framework for result in results})
