"""What a data file may say: every key and value checked, a sentence with the line for each that is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

from trainmark.errors import UserError, nearest
from trainmark.published.ledger.entry import ROW_FIELDS, SOURCE_FIELDS
from trainmark.yaml_source import Path as Place
from trainmark.yaml_source import YamlDocument as Text

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
COUNTS = {
    "batch_per_device",
    "accumulate",
    "max_batch",
    "nodes",
    "devices_per_node",
    "total_devices",
    "image_size",
    "sequence_length",
    "epochs",
}
NUMBERS = {
    "throughput",
    "average",
    "speedup",
    "memory_mb",
    "mfu",
    "tflops_per_device",
    "time_to_train_s",
    "top1",
}


class LedgerError(UserError):
    """One sentence: where, what is wrong, what to do."""


def check(written: Text) -> None:
    """Refuse a file with a key or a value that the ledger does not know."""
    data = _mapping(written, (), written.data, FILE_KEYS)
    _check_origin(written, data.get("source"))
    rows = list(_rows(written, data))
    _check_errata(written, data.get("errata") or [], rows)


def fits(row: Mapping[str, Any], of: Mapping[str, Any]) -> bool:
    """Whether a row has all the values that an erratum names."""
    return all(row.get(name) == value for name, value in of.items())


def _check_origin(written: Text, value: Any) -> None:
    publication = _mapping(written, ("source",), value, SOURCE_FIELDS)
    for name in ("title", "page", "confidence"):
        if not publication.get(name):
            raise LedgerError(f"{written.at(('source',))}: 'source' does not say its {name}; add it.")
    for name, each in publication.items():
        _value(written, ("source", name), name, each)


def _rows(written: Text, data: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    shared = _facts(written, ("shared",), data.get("shared") or {})
    for index, table in enumerate(_list(written, ("tables",), data.get("tables"))):
        at: Place = ("tables", index)
        table = _mapping(written, at, table, TABLE_KEYS)
        usual = shared | _facts(written, (*at, "shared"), table.get("shared") or {})
        columns = _list(written, (*at, "columns"), table.get("columns"))
        for column in columns:
            _known(written, (*at, "columns"), column, ROW_FIELDS)
            if columns.count(column) > 1:
                raise LedgerError(f"{written.at((*at, 'columns'))}: '{column}' is given twice; keep one.")
        for number, cells in enumerate(_list(written, (*at, "rows"), table.get("rows"))):
            here = (*at, "rows", number)
            if not isinstance(cells, list) or len(cells) != len(columns):
                raise LedgerError(f"{written.at(here)}: a row here has {len(columns)} cells, one a column.")
            facts = usual | _facts(written, here, dict(zip(columns, cells, strict=True)))
            for name in ("workload", "framework"):
                if not facts.get(name):
                    raise LedgerError(f"{written.at(here)}: the row does not say its {name}; add it.")
            yield facts


def _check_errata(written: Text, value: Any, rows: list[dict[str, Any]]) -> None:
    for index, erratum in enumerate(_list(written, ("errata",), value)):
        at: Place = ("errata", index)
        erratum = _mapping(written, at, erratum, ERRATUM_KEYS)
        of = _facts(written, (*at, "of"), erratum.get("of") or {})
        if not isinstance(erratum.get("says"), str):
            raise LedgerError(f"{written.at(at)}: the erratum does not say what is wrong; add 'says'.")
        if not any(fits(row, of) for row in rows):
            raise LedgerError(f"{written.at(at)}: the erratum fits no row of the file; mend its 'of'.")


def _facts(written: Text, at: Place, value: Any) -> dict[str, Any]:
    fields = _mapping(written, at, value, ROW_FIELDS)
    return {name: _value(written, (*at, name), name, each) for name, each in fields.items()}


def _value(written: Text, at: Place, name: str, value: Any) -> Any:
    if value is None:
        return () if name == "runs" else None
    wrong: str | None = None
    if name in CHOICES and value not in CHOICES[name]:
        raise LedgerError(f"{written.at(at)}: '{value}' is no {name}{nearest(str(value), CHOICES[name])}")
    if name in COUNTS:
        wrong = None if type(value) is int and value > 0 else "a whole number above 0"
    elif name in NUMBERS:
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
