"""The data files, checked and read into entries; choosing among these.

Every key and value is checked, with a sentence and its line for each that is wrong.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

from trainmark.base.errors import UserError, nearest
from trainmark.base.yaml_source import Path as Place
from trainmark.base.yaml_source import YamlDocument as Text
from trainmark.base.yaml_source import file_text, packaged, read
from trainmark.logs.ledger.entry import (
    ROW_FIELDS,
    SOURCE_FIELDS,
    LedgerEntry,
    LedgerRow,
    Publication,
    device_family,
    names_of,
    published_names,
    sizes_of,
)
from trainmark.measure.key import Key

FILE_KEYS = ("source", "shared", "tables", "errata")
TABLE_KEYS = ("about", "shared", "columns", "rows")
ERRATUM_KEYS = ("of", "says")
CHOICES = {
    "confidence": ("published", "computed", "self-reported", "excerpt", "measured"),
    "kind": ("published", "trainmark"),
    "precision": ("fp32", "tf32", "amp", "fp16", "bf16", "fp8", "fp4"),
    "unit": ("images/s", "sequences/s", "samples/s", "tokens/s"),
    "layout": ("NCHW", "NHWC"),
    "padding": ("computed", "skipped"),
}
# What a field of a row holds, as its annotation says: `int | None` is a count, `float | None` a number.
FIELD_TYPES = {field.name: str(field.type).partition(" ")[0] for field in fields(LedgerRow)}


class LedgerError(UserError):
    """One sentence: where, what is wrong, what to do."""


def check_file(written: Text) -> None:
    """Refuse a file with a key or a value that the ledger does not know."""
    data = _mapping(written, (), written.data, FILE_KEYS)
    _check_origin(written, data.get("source"))
    rows = list(_check_rows(written, data))
    _check_errata(written, data.get("errata") or [], rows)


def row_fits(row: Mapping[str, Any], of: Mapping[str, Any]) -> bool:
    """Whether a row has all the values that an erratum names."""
    return all(row.get(name) == value for name, value in of.items())


def _check_origin(written: Text, value: Any) -> None:
    publication = _mapping(written, ("source",), value, SOURCE_FIELDS)
    for name in ("title", "page", "confidence"):
        if not publication.get(name):
            raise LedgerError(f"{written.at(('source',))}: 'source' does not say its {name}; add it.")
    for name, each in publication.items():
        _check_value(written, ("source", name), name, each)


def _check_rows(written: Text, data: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    shared = _check_facts(written, ("shared",), data.get("shared") or {})
    for index, table in enumerate(_list(written, ("tables",), data.get("tables"))):
        at: Place = ("tables", index)
        table = _mapping(written, at, table, TABLE_KEYS)
        usual = shared | _check_facts(written, (*at, "shared"), table.get("shared") or {})
        columns = _list(written, (*at, "columns"), table.get("columns"))
        for column in columns:
            _known(written, (*at, "columns"), column, ROW_FIELDS)
            if columns.count(column) > 1:
                raise LedgerError(f"{written.at((*at, 'columns'))}: '{column}' is given twice; keep one.")
        for number, cells in enumerate(_list(written, (*at, "rows"), table.get("rows"))):
            here = (*at, "rows", number)
            if not isinstance(cells, list) or len(cells) != len(columns):
                raise LedgerError(f"{written.at(here)}: a row here has {len(columns)} cells, one a column.")
            facts = usual | _check_facts(written, here, dict(zip(columns, cells, strict=True)))
            for name in ("workload", "framework"):
                if not facts.get(name):
                    raise LedgerError(f"{written.at(here)}: the row does not say its {name}; add it.")
            yield facts


def _check_errata(written: Text, value: Any, rows: list[dict[str, Any]]) -> None:
    for index, erratum in enumerate(_list(written, ("errata",), value)):
        at: Place = ("errata", index)
        erratum = _mapping(written, at, erratum, ERRATUM_KEYS)
        of = _check_facts(written, (*at, "of"), erratum.get("of") or {})
        if not isinstance(erratum.get("says"), str):
            raise LedgerError(f"{written.at(at)}: the erratum does not say what is wrong; add 'says'.")
        if not any(row_fits(row, of) for row in rows):
            raise LedgerError(f"{written.at(at)}: the erratum fits no row of the file; mend its 'of'.")


def _check_facts(written: Text, at: Place, value: Any) -> dict[str, Any]:
    facts = _mapping(written, at, value, ROW_FIELDS)
    return {name: _check_value(written, (*at, name), name, each) for name, each in facts.items()}


def _check_value(written: Text, at: Place, name: str, value: Any) -> Any:
    if value is None:
        return () if name == "runs" else None
    wrong: str | None = None
    if name in CHOICES and value not in CHOICES[name]:
        raise LedgerError(f"{written.at(at)}: '{value}' is no {name}{nearest(str(value), CHOICES[name])}")
    if FIELD_TYPES.get(name) == "int":
        wrong = None if type(value) is int and value > 0 else "a whole number above 0"
    elif FIELD_TYPES.get(name) == "float":
        wrong = None if _positive(value) else "a number above 0"
    elif name == "runs":
        value = tuple(value) if isinstance(value, list) else ()
        wrong = None if value and all(map(_positive, value)) else "a list of numbers above 0"
    elif name == "date" and type(value) is date:
        return value.isoformat()
    elif not isinstance(value, str):
        wrong = "text; put it in quotes"
    if wrong:
        raise LedgerError(f"{written.at(at)}: '{name}' must be {wrong}.")
    return " ".join(value.split()) if isinstance(value, str) else value


def _positive(value: Any) -> bool:
    return type(value) in (int, float) and 0 < value < float("inf")


def _mapping(written: Text, at: Place, value: Any, known: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(value, dict):
        what = f"'{at[-1]}'" if at and isinstance(at[-1], str) else "this"
        raise LedgerError(f"{written.at(at)}: {what} must be a mapping with keys of {', '.join(known)}.")
    for key in value:
        _known(written, (*at, key), key, known)
    return value


def _list(written: Text, at: Place, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise LedgerError(f"{written.at(at)}: '{at[-1]}' must be a list.")
    return value


def _known(written: Text, at: Place, key: Any, known: tuple[str, ...]) -> None:
    if key not in known:
        raise LedgerError(f"{written.at(at)}: unknown key '{key}'{nearest(str(key), known)}")


DATA = Path(__file__).parent / "data"
LARGEST_BYTES = 1 << 20


def load(*more: Path) -> tuple[LedgerEntry, ...]:
    """Every entry of the ledger, and of further files in the same form."""
    own = tuple(entry for file in _files() for entry in _own(file))
    return own + tuple(entry for path in more for entry in parse(_text(path), path.name))


def load_for(keys: Iterable[Key]) -> tuple[LedgerEntry, ...]:
    """Every entry of the models that these results are of."""
    return load_of({name for key in keys for name in names_of(key)})


def load_of(workloads: Collection[str]) -> tuple[LedgerEntry, ...]:
    """Every entry with one of these published names; a file in which none of them stands is not parsed."""
    named = (file for file in _files() if any(name in _text(file) for name in workloads))
    return tuple(entry for file in named for entry in _own(file) if entry.row.workload in workloads)


def parse(text: str, name: str) -> tuple[LedgerEntry, ...]:
    """The entries of one file, YAML or JSON, after a check of all it says; its name is that of the source."""
    if not text.strip():
        raise LedgerError(f"{name} is empty; a source needs {', '.join(FILE_KEYS[:3])}.")
    written = read(text, name)
    check_file(written)
    return tuple(_entries(written.data, Path(name).name))


def _files() -> list[Path]:
    return sorted(DATA.iterdir())


@cache
def _own(file: Path) -> tuple[LedgerEntry, ...]:
    """Without the checks: the tests have made them, and they take ten times as long as the reading."""
    if file.suffix == ".json":
        return tuple(_entries(json.loads(_text(file)), file.name))
    return tuple(_entries(packaged(file), file.name))


def _text(file: Path) -> str:
    return file_text(file, "a file of results", LARGEST_BYTES)


def _entries(data: Mapping[str, Any], name: str) -> Iterator[LedgerEntry]:
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
            yield LedgerEntry(
                source, origin, LedgerRow(**facts), tuple(says for of, says in errata if row_fits(facts, of))
            )


def _facts(values: Mapping[str, Any] | None) -> dict[str, Any]:
    return {name: _value(value) for name, value in (values or {}).items()}


def _value(value: Any) -> Any:
    """As an entry has it: text without line ends, a day as text, a list that cannot be changed."""
    if isinstance(value, str):
        return " ".join(value.split()) if "\n" in value or "  " in value else value
    if isinstance(value, date):
        return value.isoformat()
    return tuple(value) if isinstance(value, list) else value


YEARS = re.compile(r"(20\d\d)(?:-(20\d\d))?")
ASKED: dict[str, Callable[[LedgerEntry], str | None]] = {
    "framework": lambda entry: entry.row.framework,
    "device": lambda entry: device_family(entry.row.device) if entry.row.device else None,
    "precision": lambda entry: entry.row.precision,
    "topology": lambda entry: entry.row.topology,
    "source": lambda entry: entry.source,
    "unit": lambda entry: entry.row.unit,
    "length": lambda entry: str(entry.row.sequence_length) if entry.row.sequence_length else None,
}


def find(
    entries: Sequence[LedgerEntry],
    *,
    workload: str | None = None,
    size: str | None = None,
    length: str | None = None,
    unit: str | None = None,
    framework: str | None = None,
    device: str | None = None,
    precision: str | None = None,
    topology: str | None = None,
    source: str | None = None,
    model: str | None = None,
    year: str | None = None,
) -> tuple[LedgerEntry, ...]:
    """The entries with these values; a value that no entry has is refused, with the nearest that one has.

    `workload` is a published name, or with a `size` the name of a workload here: gpt2 at 124m is gpt2-124m.
    `model` is a part of a workload's name, `length` that of a sequence in tokens, `year` a year or a span of
    years of the publication.
    """
    wanted = {
        "length": length,
        "unit": unit,
        "framework": framework,
        "device": device and device_family(device),
        "precision": precision,
        "topology": topology,
        "source": source,
    }
    matching: Iterable[LedgerEntry] = entries
    if workload is not None:
        matching = _of_workload(entries, workload, size)
    elif size is not None:
        raise LedgerError("a size is one of a workload; give --workload as well.")
    for name, value in wanted.items():
        if value is None:
            continue
        asked = ASKED[name]
        known = {field for entry in entries if (field := asked(entry))}
        if value not in known:
            raise LedgerError(f"the ledger has no {name} '{value}'{nearest(value, known)}")
        matching = [entry for entry in matching if asked(entry) == value]
    if model is not None:
        matching = _of_model(matching, model, {entry.row.workload for entry in entries})
    if year is not None:
        matching = _of_year(matching, year)
    return tuple(matching)


def _of_workload(entries: Sequence[LedgerEntry], workload: str, size: str | None) -> list[LedgerEntry]:
    names = published_names(workload, size)
    if matching := [entry for entry in entries if entry.row.workload in names]:
        return matching
    known = {entry.row.workload for entry in entries}
    if size is None and (sizes := sizes_of(workload, known)):
        raise LedgerError(f"the ledger has {workload} by its sizes; add --size {' or '.join(sizes)}.")
    raise LedgerError(f"the ledger has no workload '{names[0]}'{nearest(names[0], known)}")


def _of_model(entries: Iterable[LedgerEntry], model: str, workloads: set[str]) -> list[LedgerEntry]:
    """Those whose workload has `model` in its name, hyphens and case aside: `llama3` finds `llama3.1-8b`."""
    matching = {workload for workload in workloads if _letters(model) in _letters(workload)}
    if not matching:
        raise LedgerError(f"the ledger has no model '{model}'{nearest(model, workloads)}")
    return [entry for entry in entries if entry.row.workload in matching]


def _letters(name: str) -> str:
    return re.sub(r"[\s_-]", "", name.lower())


def _of_year(entries: Iterable[LedgerEntry], year: str) -> list[LedgerEntry]:
    span = YEARS.fullmatch(year)
    if not span:
        raise LedgerError(f"'{year}' is no year; write 2024, or 2021-2023.")
    first, last = span[1], span[2] or span[1]
    return [entry for entry in entries if entry.date and first <= entry.date[:4] <= last]
