"""MFU, HFU, memory and energy of each result, and what other codes would call its MFU, as two tables.

Only for results whose workload counts FLOP by other codes' conventions as well: elsewhere MFU is one number
and stands among the results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from trainmark.measure.figure import Result
from trainmark.measure.key import Key
from trainmark.pages import label, number
from trainmark.report.format.table import Table
from trainmark.report.sections.group import by_series

Column = Callable[[Result], str]
GIGA = 1e9
COLUMNS: dict[str, Column] = {
    "mfu": lambda result: number.percent(result.utilisation.value if result.utilisation else None),
    "hfu": lambda result: number.percent(
        result.hardware_utilisation.value if result.hardware_utilisation else None
    ),
    "memory_roofline": lambda result: number.percent(result.memory_share),
    "memory": lambda result: number.gibibytes(result.memory_bytes),
    "energy": lambda result: number.joules(result.joules_per_sample),
}


def named_results(results: Sequence[Result]) -> list[tuple[str, Result]]:
    """Return those that have conventions, under the names of their cases."""
    return [
        (f"{group.name} {result.key.topology}", result)
        for group in by_series(results)
        for result in group.results
        if result.conventions
    ]


def figures_table(rows: Sequence[tuple[str, Result]], t: dict[str, str]) -> Table:
    """Return a row for each result; a column in which no result has a figure is left out."""
    columns = {
        name: column
        for name, column in COLUMNS.items()
        if any(column(result) != number.MISSING for _, result in rows)
    }
    header = [t["case"], *(t[name].format(unit=_units(rows)) for name in columns)]
    cells = [[case, *(column(result) for column in columns.values())] for case, result in rows]
    return Table(header, cells, frozenset(range(1, len(header))))


def conventions_table(rows: Sequence[tuple[str, Result]], t: dict[str, str]) -> Table:
    """Return the MFU of each result by each convention, below the GFLOP of a sample that it follows from.

    Ours comes first. Results that share their counts share the row of GFLOP.
    """
    names = list(dict.fromkeys(convention.name for _, result in rows for convention in result.conventions))
    counted: dict[tuple[str, ...], list[tuple[str, Result]]] = {}
    for case, result in rows:
        counted.setdefault(tuple(_gigaflops(result, names)), []).append((case, result))
    keys = [[result.key for _, result in members] for members in counted.values()]
    cells: list[list[str]] = []
    for gigaflops, members in counted.items():
        first = members[0][1]
        title = t["gigaflop_of"].format(unit=_one(first.unit)), label.extras(first.key, _telling_axes(keys))
        cells.append([" ".join(filter(None, title)), *gigaflops])
        cells += [[case, *_shares(result, names)] for case, result in members]
    header = [t["case"], t["exact_count"], *names]
    return Table(header, cells, frozenset(range(1, len(header))))


def _telling_axes(groups: Sequence[Sequence[Key]]) -> list[str]:
    """Return the workload and the axes that are the same in each of these groups and tell them apart."""
    names = ("workload", *dict.fromkeys(name for keys in groups for key in keys for name, _ in key.axes))
    values = {name: [{key.value(name) for key in keys} for keys in groups] for name in names}
    return [
        name
        for name, sets in values.items()
        if all(len(own) == 1 for own in sets) and len(set().union(*sets)) > 1
    ]


def _gigaflops(result: Result, names: Sequence[str]) -> list[str]:
    by_name = {convention.name: convention.utilisation.flops_per_sample for convention in result.conventions}
    own = result.utilisation.flops_per_sample if result.utilisation else None
    counts = (own, *(by_name.get(name) for name in names))
    return [number.significant(None if flops is None else flops / GIGA) for flops in counts]


def _shares(result: Result, names: Sequence[str]) -> list[str]:
    by_name = {convention.name: convention.utilisation.value for convention in result.conventions}
    own = result.utilisation.value if result.utilisation else None
    return [number.percent(share) for share in (own, *(by_name.get(name) for name in names))]


def _units(rows: Sequence[tuple[str, Result]]) -> str:
    return "/".join(dict.fromkeys(_one(result.unit) for _, result in rows))


def _one(unit: str) -> str:
    """Return the singular of a unit: `token` of `tokens`."""
    return unit.removesuffix("s")
