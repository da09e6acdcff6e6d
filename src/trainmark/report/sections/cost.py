"""What each result costs at a given price, and the energy it takes, as one table."""

from __future__ import annotations

from trainmark.measure.cost import cost_of
from trainmark.pages import number
from trainmark.report.document import Document
from trainmark.report.format.table import Table
from trainmark.report.sections.group import by_series


def cost_table(document: Document, t: dict[str, str]) -> Table | None:
    """Return a row for each result; None without a price. Columns of which nothing is known are left out."""
    if document.price is None:
        return None
    costs = [
        (f"{group.name} {result.key.topology}", cost_of(result, document.price))
        for group in by_series(document.results)
        for result in group.results
    ]
    names = [
        name
        for name in ("per_million", "to_target", "kwh_per_million")
        if any(getattr(cost, name) is not None for _, cost in costs)
    ]
    header = [t["case"], *(t[f"cost_{name}"] for name in names)]
    rows = [[case, *(number.significant(getattr(cost, name), 3) for name in names)] for case, cost in costs]
    return Table(header, rows, frozenset(range(1, len(header)))) if rows else None


def cost_note(document: Document, t: dict[str, str]) -> str:
    return t["cost_note"].format(price=document.price)
