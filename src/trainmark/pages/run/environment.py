"""The environment as a reader takes it in: facts, blocks of text, and tables of what is there many times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from trainmark.pages.facts import fact_name
from trainmark.pages.number import gibibytes
from trainmark.pages.run.answer import LIST
from trainmark.view.blocks import Block, Code, Facts, Page, Section, Sentence, Span, Table, Text, only
from trainmark.view.message import Message, _, joined

SECTIONS = {
    "cluster": _("Cluster"),
    "host": _("Host"),
    "devices": _("Devices"),
    "topology": _("Topology"),
    "libraries": _("Libraries"),
    "fabric": _("Fabric"),
    "software": _("Software"),
    "git": _("Source"),
    "container": _("Container"),
}
NOT_FOUND = Span(_("not found"), "missing")


def environment_section(environment: Mapping[str, Any]) -> Section:
    parts = [environment_part(name, value) for name, value in environment.items()]
    missing = [joined(list(filter(None, (part.title, name))), " ") for part in parts for name in part.missing]
    shown = [part.section() for part in parts if part.is_known]
    not_found: list[Block] = []
    if missing:
        title = _("{count} facts were not found", count=len(missing))
        folded = Section(title, [Sentence(joined(missing, LIST), "note")], folded=True)
        not_found = [only("html", folded)]
    inside = [Section("", shown, look="environment"), *not_found]
    return Section(_("Environment"), inside, frozenset({"markdown", "html"}))


def environment_page(environment: Mapping[str, Any], fingerprint: str) -> Page:
    """A machine on its own: also what was looked for and is not there."""
    parts = [environment_part(name, value) for name, value in environment.items()]
    shown = [
        part.section(with_missing=True)
        if part.is_known or any(part.missing)
        else Section(part.title, [Sentence(NOT_FOUND)])
        for part in parts
    ]
    return Page(_("Environment"), [*shown, Facts([(_("fingerprint"), fingerprint)])])


@dataclass
class EnvironmentPart:
    """One part of the environment: facts by name, those that were looked for in vain, texts and tables.

    A table has things of one kind, in the columns in which they differ; what they share is a fact.
    """

    title: str
    facts: list[tuple[Text, Text]] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    texts: list[tuple[str, str]] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)

    @property
    def is_known(self) -> bool:
        return bool(self.facts or self.texts or self.tables)

    def section(self, with_missing: bool = False) -> Section:
        missing = [(NOT_FOUND, joined(self.missing, LIST))] if with_missing and any(self.missing) else []
        blocks: list[Block] = [Facts([*self.facts, *missing])] if self.facts or missing else []
        blocks += self.tables
        for name, text in self.texts:
            blocks += [*([Sentence(name, "quiet")] if name else ()), Code(text)]
        look = "wide" if self.texts or self.tables else ""
        return Section(self.title, blocks, look=look)

    def add(self, name: str, key: str, value: Any) -> None:
        if value is None:
            self.missing.append(name)
        else:
            self.facts.append((name, _fact(key, value)))

    def visit(self, label: str, key: str, value: Any) -> None:
        if isinstance(value, Mapping):
            for name, item in value.items():
                self.visit(_below(label, name), str(name), item)
        elif _is_records(value):
            self._add_records(label, value)
        elif isinstance(value, (list, tuple)):
            self.add(label, key, ", ".join(map(str, value)) if value else None)
        elif isinstance(value, str) and "\n" in value.strip():
            self.texts.append((label, value.strip("\n")))
        else:
            self.add(label, key, value)

    def _add_records(self, label: str, records: Sequence[Mapping[str, Any]]) -> None:
        columns = list(dict.fromkeys(key for record in records for key in record))
        varying = [
            key for key in columns if any(record.get(key) != records[0].get(key) for record in records)
        ]
        if len(records) > 1:
            self.add(_below(label, "count"), "count", len(records))
        for key in columns:
            if key not in varying:
                self.add(_below(label, key), key, records[0][key])
        if varying:
            rows = [[_fact(key, record.get(key)) for key in varying] for record in records]
            self.tables.append(Table([fact_name(key) for key in varying], rows))


def environment_part(name: str, value: Any) -> EnvironmentPart:
    part = EnvironmentPart(SECTIONS.get(name, name))
    part.visit("", name, value)
    return part


def _below(label: str, name: Any) -> Message:
    return joined([*([label] if label else ()), fact_name(str(name))], " ")


def _is_records(value: Any) -> bool:
    return (
        isinstance(value, (list, tuple)) and bool(value) and all(isinstance(item, Mapping) for item in value)
    )


def _fact(key: str, value: Any) -> Text:
    """Return a value in words; bytes by the thousand million are for machines, a reader gets GiB."""
    if value is None or value == "" or (isinstance(value, float) and not isfinite(value)):
        return NOT_FOUND
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if key.endswith("bytes") and isinstance(value, (int, float)):
        return f"{gibibytes(value)} GiB"
    if isinstance(value, int) and abs(value) >= 100_000:
        return f"{value:,}"
    return str(value)
