"""The scaling series, and where the time goes, as Markdown tables."""

from __future__ import annotations

from collections.abc import Sequence

from trainmark.measure.figure import Straggler
from trainmark.measure.scaling import ScalingPoint
from trainmark.pages import number
from trainmark.report.format.table import Table
from trainmark.report.sections.scaling import LOSSES, SHARES, CaseTimes, ScalingTable, TimeRow


def scaled(scaling_table: ScalingTable, t: dict[str, str]) -> str:
    losses = LOSSES if any(point.loss for point in scaling_table.points) else ()
    header = (
        t["placed"],
        scaling_table.unit,
        t["speedup"],
        t["efficiency_column"],
        *(f"− {t['loss_' + name]}" for name in losses),
    )
    rows = [_point(point, point is scaling_table.points[0], losses) for point in scaling_table.points]
    return Table(header, rows, frozenset(range(1, len(header))), trusted=frozenset({2, 3})).markdown()


def times(cases: Sequence[CaseTimes], t: dict[str, str]) -> str:
    header = (t["case"], t["ranks"], *(t["share_" + name] for name in SHARES), t["own_time"], t["held_back"])
    rows = [
        _time_row(f"{case.name} {case.topology}" if whole else f"– {row.name}", row, case, t)
        for case in cases
        for whole, row in ((row is case.rows[0], row) for row in case.rows)
    ]
    return Table(header, rows, frozenset(range(1, len(header) - 1))).markdown()


def holding_back(stragglers: Sequence[Straggler], t: dict[str, str]) -> str:
    """`rank 3 on b, −12.1 %`."""
    return "; ".join(f"{_place(slow, t)}, −{number.percent(slow.cost)}" for slow in stragglers)


def _place(slow: Straggler, t: dict[str, str]) -> str:
    if slow.rank is None:
        return f"{t['node']} {slow.node}"
    return f"{t['rank']} {slow.rank}" + (f" ({slow.node})" if slow.node else "")


def _point(point: ScalingPoint, baseline: bool, losses: Sequence[str]) -> tuple[str, ...]:
    speedup, efficiency, loss = point.speedup, point.efficiency, point.loss
    ratios = ("1", "100 %") if baseline else (
        f"{number.ratio(speedup.value)} {_bounds(number.ratio_interval(speedup.interval))}".strip(),
        f"{number.percent(efficiency.value)} {_bounds(number.percent_interval(efficiency.interval))}".strip(),
    )  # fmt: skip
    return (
        point.result.key.topology,
        number.throughput(point.result.throughput),
        *ratios,
        *("" if baseline else number.percent(getattr(loss, name) if loss else None) for name in losses),
    )


def _time_row(name: str, row: TimeRow, case: CaseTimes, t: dict[str, str]) -> tuple[str, ...]:
    slow = case.stragglers if row is case.rows[0] else ([row.straggler] if row.straggler else [])
    return (
        name,
        str(row.ranks),
        *(number.percent(getattr(row.shares, part)) for part in SHARES),
        number.duration(row.own_seconds),
        holding_back(slow, t),
    )


def _bounds(text: str) -> str:
    return "" if text == number.MISSING else text
