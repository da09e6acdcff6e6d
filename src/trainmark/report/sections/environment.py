"""The environment as a reader takes it in: facts, blocks of text, and tables of what is there many times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainmark.pages.number import gibibytes
from trainmark.report.format.fact_words import fact_name
from trainmark.report.format.table import Table
from trainmark.report.format.words import Lang

Fact = tuple[str, Any]


@dataclass(frozen=True)
class Section:
    """One part of the environment; values are plain scalars, None where one is missing.

    A table has things of one kind, in the columns in which they differ; what they share is a fact.
    """

    name: str
    facts: tuple[Fact, ...]
    blocks: tuple[tuple[str, str], ...]
    tables: tuple[Table, ...]

    @property
    def known(self) -> tuple[Fact, ...]:
        return tuple(fact for fact in self.facts if fact[1] is not None)

    @property
    def missing(self) -> tuple[str, ...]:
        """The names of what was looked for in vain; an empty one is the section itself."""
        return tuple(name for name, value in self.facts if value is None)

    @property
    def is_known(self) -> bool:
        return bool(self.known or self.blocks or self.tables)


def sections(environment: Mapping[str, Any], lang: Lang = "en") -> tuple[Section, ...]:
    return tuple(_section(name, value, lang) for name, value in environment.items())


def missing_facts(environment: Sequence[Section], t: dict[str, str]) -> list[str]:
    """Return the names of all that was looked for in vain, each with its section."""
    return [
        f"{t.get(section.name) or section.name} {name}".strip()
        for section in environment
        for name in section.missing
    ]


def _section(name: str, value: Any, lang: Lang) -> Section:
    facts: list[Fact] = []
    blocks: list[tuple[str, str]] = []
    tables: list[Table] = []

    def visit(label: str, key: str, value: Any) -> None:
        if isinstance(value, Mapping):
            for name, item in value.items():
                visit(f"{label} {fact_name(name, lang)}".strip(), str(name), item)
        elif _is_records(value):
            shared, table = _records(label, value, lang)
            facts.extend(shared)
            if table.header:
                tables.append(table)
        elif isinstance(value, (list, tuple)):
            facts.append((label, ", ".join(map(str, value)) if value else None))
        elif isinstance(value, str) and "\n" in value.strip():
            blocks.append((label, value.strip("\n")))
        else:
            facts.append((label, _sized(key, value)))

    visit("", name, value)
    return Section(name, tuple(facts), tuple(blocks), tuple(tables))


def _is_records(value: Any) -> bool:
    return (
        isinstance(value, (list, tuple)) and bool(value) and all(isinstance(item, Mapping) for item in value)
    )


def _records(label: str, records: Sequence[Mapping[str, Any]], lang: Lang) -> tuple[list[Fact], Table]:
    columns = list(dict.fromkeys(key for record in records for key in record))
    varying = [key for key in columns if any(record.get(key) != records[0].get(key) for record in records)]
    shared: list[Fact] = [
        (f"{label} {fact_name(key, lang)}".strip(), _scalar(key, records[0][key]))
        for key in columns
        if key not in varying
    ]
    if len(records) > 1:
        shared.insert(0, (f"{label} {fact_name('count', lang)}".strip(), len(records)))
    rows = tuple(tuple(_scalar(key, record.get(key)) for key in varying) for record in records)
    return shared, Table(tuple(fact_name(key, lang) for key in varying), rows)


def _scalar(key: str, value: Any) -> Any:
    return _sized(key, value if value is None or isinstance(value, (str, int, float)) else str(value))


def _sized(key: str, value: Any) -> Any:
    """Bytes by the thousand million are for machines; a reader gets GiB."""
    return f"{gibibytes(value)} GiB" if key.endswith("bytes") and isinstance(value, (int, float)) else value
