"""The environment as a reader takes it in: facts, blocks of text, and tables of what is there many times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainmark.report.format.number import gibibytes
from trainmark.report.format.table import Table

Fact = tuple[str, Any]


@dataclass(frozen=True)
class Section:
    """One part of the environment; values are plain scalars, None where one was not found.

    A table has things of one kind, in the columns in which they differ; what they share is a fact.
    """

    name: str
    facts: tuple[Fact, ...]
    blocks: tuple[tuple[str, str], ...]
    tables: tuple[Table, ...]


def sections(environment: Mapping[str, Any]) -> tuple[Section, ...]:
    return tuple(_section(name, value) for name, value in environment.items())


def _section(name: str, value: Any) -> Section:
    facts: list[Fact] = []
    blocks: list[tuple[str, str]] = []
    tables: list[Table] = []

    def visit(label: str, value: Any) -> None:
        if isinstance(value, Mapping):
            for key, item in value.items():
                visit(f"{label} {_words(key)}".strip(), item)
        elif _is_records(value):
            shared, table = _records(label, value)
            facts.extend(shared)
            if table.header:
                tables.append(table)
        elif isinstance(value, (list, tuple)):
            facts.append((label, ", ".join(map(str, value)) if value else None))
        elif isinstance(value, str) and "\n" in value.strip():
            blocks.append((label, value.strip("\n")))
        else:
            facts.append(_sized(label, value))

    visit("", value)
    return Section(name, tuple(facts), tuple(blocks), tuple(tables))


def _is_records(value: Any) -> bool:
    return (
        isinstance(value, (list, tuple)) and bool(value) and all(isinstance(item, Mapping) for item in value)
    )


def _records(label: str, records: Sequence[Mapping[str, Any]]) -> tuple[list[Fact], Table]:
    columns = list(dict.fromkeys(key for record in records for key in record))
    varying = [key for key in columns if any(record.get(key) != records[0].get(key) for record in records)]
    shared: list[Fact] = [
        _sized(f"{label} {_words(key)}".strip(), _scalar(records[0][key]))
        for key in columns
        if key not in varying
    ]
    if len(records) > 1:
        shared.insert(0, (f"{label} count".strip(), len(records)))
    rows = tuple(tuple(_scalar(record.get(key)) for key in varying) for record in records)
    return shared, Table(tuple(map(_words, varying)), rows)


def _scalar(value: Any) -> Any:
    return value if value is None or isinstance(value, (str, int, float)) else str(value)


def _sized(label: str, value: Any) -> Fact:
    """Bytes by the thousand million are for machines; a reader gets GiB."""
    if label.endswith("bytes") and isinstance(value, (int, float)):
        return label.removesuffix("bytes").strip(), f"{gibibytes(value)} GiB"
    return label, value


def _words(key: Any) -> str:
    return str(key).replace("_", " ")
