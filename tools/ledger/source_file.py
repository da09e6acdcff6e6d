"""A source of the ledger as compact JSON: a row a line, and in the columns only what changes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

Facts = Mapping[str, Any]


def table(about: str, rows: Iterable[Facts], order: Iterable[str]) -> dict[str, Any]:
    """The rows as columns in this order; what all rows say alike is said once, what none says not at all."""
    records = [dict(row) for row in rows]
    names = [name for name in order if any(row.get(name) is not None for row in records)]
    unknown = {name for row in records for name, value in row.items() if value is not None} - set(names)
    assert not unknown, f"columns without a place: {unknown}"
    alike = {
        name: records[0][name]
        for name in names
        if all(row.get(name) == records[0].get(name) for row in records) and records[0].get(name) is not None
    }
    columns = [name for name in names if name not in alike] or [names[-1]]
    alike = {name: value for name, value in alike.items() if name not in columns}
    return {
        "about": about,
        "shared": alike,
        "columns": columns,
        "rows": [[row.get(name) for name in columns] for row in records],
    }


def written(source: Facts, tables: Iterable[Facts], errata: Iterable[Facts] = ()) -> str:
    """The text of the file."""
    parts = [f'{{"source": {_json(source)},', '"tables": [']
    texts = []
    for each in tables:
        rows = ",\n".join("  " + _json(row) for row in each["rows"])
        head = ", ".join(f"{_json(name)}: {_json(each[name])}" for name in ("about", "shared", "columns"))
        texts.append(f' {{{head}, "rows": [\n{rows}\n ]}}')
    parts.append(",\n".join(texts))
    errata_text = ",\n".join(" " + _json(erratum) for erratum in errata)
    parts.append('], "errata": [' + (f"\n{errata_text}\n" if errata_text else "") + "]}")
    return "\n".join(parts) + "\n"


def significant(value: float | None, digits: int = 5) -> float | int | None:
    """Rounded to so many digits; whole numbers without a point."""
    if value is None:
        return None
    rounded = float(f"{value:.{digits}g}")
    return int(rounded) if rounded == int(rounded) else rounded


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
