"""The data files, read into entries."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from trainmark.measure.key import Key
from trainmark.published.ledger.check import FILE_KEYS, LedgerError, check, fits
from trainmark.published.ledger.entry import Entry, Publication, Row
from trainmark.published.ledger.names import names_of
from trainmark.yaml_source import file_text, read

__all__ = ["LedgerError", "load", "load_for", "load_of", "parse"]

DATA = Path(__file__).parent / "data"
LARGEST_BYTES = 1 << 20


def load(*more: Path) -> tuple[Entry, ...]:
    """Every entry of the ledger, and of further files in the same form."""
    own = tuple(entry for file in _files() for entry in _own(file))
    return own + tuple(entry for path in more for entry in parse(_text(path), path.name))


def load_for(keys: Iterable[Key]) -> tuple[Entry, ...]:
    """Every entry of the models that these results are of."""
    return load_of({name for key in keys for name in names_of(key)})


def load_of(workloads: Collection[str]) -> tuple[Entry, ...]:
    """Every entry with one of these published names; a file in which none of them stands is not parsed."""
    named = (file for file in _files() if any(name in _text(file) for name in workloads))
    return tuple(entry for file in named for entry in _own(file) if entry.row.workload in workloads)


def parse(text: str, name: str) -> tuple[Entry, ...]:
    """The entries of one file, YAML or JSON, after a check of all it says; its name is that of the source."""
    if not text.strip():
        raise LedgerError(f"{name} is empty; a source needs {', '.join(FILE_KEYS[:3])}.")
    written = read(text, name)
    check(written)
    return tuple(_entries(written.data, Path(name).name))


def _files() -> list[Path]:
    return sorted(DATA.iterdir())


@cache
def _own(file: Path) -> tuple[Entry, ...]:
    """Without the checks: the tests have made them, and they take ten times as long as the reading."""
    text = _text(file)
    if file.suffix == ".json":
        return tuple(_entries(json.loads(text), file.name))
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return tuple(_entries(yaml.load(text, Loader=loader), file.name))


def _text(file: Path) -> str:
    return file_text(file, "a file of results", LARGEST_BYTES)


def _entries(data: Mapping[str, Any], name: str) -> Iterator[Entry]:
    source = name.removesuffix(".yaml").removesuffix(".json")
    origin = Publication(**_facts(data["source"]))
    errata = [(_facts(each.get("of")), " ".join(each["says"].split())) for each in data.get("errata") or ()]
    shared = _facts(data.get("shared"))
    for table in data["tables"]:
        usual = shared | _facts(table.get("shared"))
        columns = table["columns"]
        for cells in table["rows"]:
            facts = usual | dict(zip(columns, map(_value, cells), strict=True))
            if facts.get("runs", ()) is None:
                facts["runs"] = ()
            yield Entry(source, origin, Row(**facts), tuple(says for of, says in errata if fits(facts, of)))


def _facts(values: Mapping[str, Any] | None) -> dict[str, Any]:
    return {name: _value(value) for name, value in (values or {}).items()}


def _value(value: Any) -> Any:
    """As an entry has it: text without line ends, a day as text, a list that cannot be changed."""
    if isinstance(value, str):
        return " ".join(value.split()) if "\n" in value or "  " in value else value
    if isinstance(value, date):
        return value.isoformat()
    return tuple(value) if isinstance(value, list) else value
