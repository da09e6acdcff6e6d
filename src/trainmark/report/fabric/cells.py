"""What the map of a fabric shows in each of its places: node by node, or rank by rank on one node."""

from __future__ import annotations

import statistics
from collections import defaultdict
from dataclasses import dataclass

from trainmark.measure.fabric import FabricMeasurement, Link, slow_parts
from trainmark.report.fabric.text import concerns


@dataclass(frozen=True)
class Cell:
    """The medians over the links of one place; `share` is its bandwidth over the usual one of its like."""

    bytes_per_second: float | None
    latency_seconds: float
    share: float | None
    slow: frozenset[str]


@dataclass(frozen=True)
class Grid:
    """`cells` by row and column, the column never after the row; on the diagonal what lies inside a node."""

    what: str
    names: tuple[str, ...]
    cells: dict[tuple[int, int], Cell]


def grid(fabric: FabricMeasurement) -> Grid:
    nodes = tuple(dict.fromkeys(fabric.nodes))
    if len(nodes) > 1:
        order = {name: place for place, name in enumerate(nodes)}
        return Grid("nodes", nodes, _cells(fabric, [order[node] for node in fabric.nodes]))
    ranks = range(len(fabric.nodes))
    return Grid("ranks", tuple(map(str, ranks)), _cells(fabric, list(ranks)))


def _cells(fabric: FabricMeasurement, place: list[int]) -> dict[tuple[int, int], Cell]:
    """`place` has the row of each rank."""
    links_by_cell: dict[tuple[int, int], list[Link]] = defaultdict(list)
    for link in fabric.links:
        first, second = (place[rank] for rank in link.ranks)
        links_by_cell[max(first, second), min(first, second)].append(link)
    rates = {at: _median_rate(links) for at, links in links_by_cell.items()}
    usual = {
        inside: statistics.median(known)
        for inside in (True, False)
        if (known := [rate for (row, column), rate in rates.items() if rate and (row == column) == inside])
    }
    slow = slow_parts(fabric.links)
    return {
        (row, column): Cell(
            bytes_per_second=(rate := rates[row, column]),
            latency_seconds=statistics.median(link.latency.seconds for link in links),
            share=rate / usual[row == column] if rate else None,
            slow=frozenset(each.figure for each in slow for link in links if concerns(each, link)),
        )
        for (row, column), links in links_by_cell.items()
    }


def _median_rate(links: list[Link]) -> float | None:
    rates = [rate for link in links if (rate := link.bytes_per_second)]
    return statistics.median(rates) if rates else None
