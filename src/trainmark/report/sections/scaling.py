"""Scaling series and where the time of a case goes, as every layout shows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from statistics import fmean

from trainmark.measure.figure import RankTimes, Result, Straggler, TimeShares
from trainmark.measure.scaling import ScalingKind, ScalingPoint, ScalingSeries, scaling
from trainmark.pages import label

# Of a case on hundreds of nodes the slowest are what a reader looks for.
MOST_NODES = 16

LOSSES = ("communication", "straggling", "data", "compute", "other")
SHARES = tuple(field.name for field in fields(TimeShares))


@dataclass(frozen=True)
class ScalingTable:
    """One series under its name; the note says what stays the same and what it is held against."""

    name: str
    note: str
    unit: str
    series: ScalingSeries

    @property
    def points(self) -> tuple[ScalingPoint, ...]:
        return self.series.points


@dataclass(frozen=True)
class TimeRow:
    """A case, or one node of it, with `own_seconds` and what holding the others back costs there."""

    name: str
    ranks: int
    shares: TimeShares
    own_seconds: float
    straggler: Straggler | None = None


@dataclass(frozen=True)
class CaseTimes:
    """The rows of one case: the case itself, and its nodes where it has more than one."""

    name: str
    topology: str
    rows: tuple[TimeRow, ...]
    nodes_left_out: int
    stragglers: tuple[Straggler, ...]


def scaling_tables(results: Sequence[Result], t: dict[str, str]) -> tuple[ScalingTable, ...]:
    all_series = scaling(results)
    names = label.distinguishing(series.key for series in all_series)
    return tuple(_table(series, names, t) for series in all_series)


def case_times(results: Sequence[Result]) -> tuple[CaseTimes, ...]:
    """Of the cases with several ranks that tell working from waiting."""
    names = label.distinguishing(result.key for result in results)
    return tuple(
        _times(result, label.series(result.key, names))
        for result in results
        if result.key.devices > 1 and result.breakdown is not None
    )


def without_breakdown(results: Sequence[Result]) -> tuple[str, ...]:
    """The frameworks whose ranks do not tell working from waiting."""
    no_breakdown = (r for r in results if r.key.devices > 1 and r.breakdown is None)
    return tuple(dict.fromkeys(label.framework(result.key) for result in no_breakdown))


def _table(series: ScalingSeries, names: Sequence[str], t: dict[str, str]) -> ScalingTable:
    key, baseline = series.key, series.baseline.key.topology
    strong = series.kind is ScalingKind.STRONG
    batch = t["global_batch"].format(batch=series.global_batch) if strong else label.batch(key)
    name = " ".join(
        filter(None, (label.framework(key), label.precision(key), batch, label.extras(key, names)))
    )
    note = t["strong_note" if strong else "weak_note"].format(baseline=baseline)
    return ScalingTable(name, note, label.rate_unit(series.baseline.unit), series)


def _times(result: Result, name: str) -> CaseTimes:
    assert result.breakdown is not None
    ranks = result.breakdown.ranks
    whole = TimeRow(name, len(ranks), result.breakdown.shares, fmean(rank.own_seconds for rank in ranks))
    nodes: dict[str | None, list[RankTimes]] = {}
    for rank in ranks:
        nodes.setdefault(rank.node, []).append(rank)
    slow = {straggler.node: straggler for straggler in reversed(result.stragglers)}
    rows = [_node(str(node), own, slow.get(node)) for node, own in nodes.items()] if len(nodes) > 1 else []
    if len(rows) > MOST_NODES:
        rows = sorted(rows, key=lambda row: -row.own_seconds)[:MOST_NODES]
    left_out = len(nodes) - len(rows) if rows else 0
    return CaseTimes(name, result.key.topology, (whole, *rows), left_out, result.stragglers)


def _node(name: str, ranks: Sequence[RankTimes], straggler: Straggler | None) -> TimeRow:
    shares = TimeShares(*(fmean(getattr(rank.shares, part) for rank in ranks) for part in SHARES))
    return TimeRow(name, len(ranks), shares, fmean(rank.own_seconds for rank in ranks), straggler)
