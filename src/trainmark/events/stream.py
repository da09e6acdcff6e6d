"""Events as JSON lines: one object a line, `event` names its kind, absent fields are unknown."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import fields
from pathlib import Path
from reprlib import repr as short
from typing import Any

from trainmark.events.schema import DeviceSample, Event, Mark, RunEnd, RunStart, Scope, Step

_KINDS: dict[str, type[RunStart | Step | DeviceSample | RunEnd]] = {
    "run_start": RunStart,
    "step": Step,
    "device_sample": DeviceSample,
    "run_end": RunEnd,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}
# By the annotation of a field: what JSON must hold for it. JSON has no sign for a whole float.
_TYPES: dict[str, type | tuple[type, ...]] = {
    "int": int,
    "float": (int, float),
    "str": str,
    "Scope": str,
    "tuple[str, ...]": list,
    "dict[str, Any]": dict,
}
_FIELDS = {
    kind: {f.name: _TYPES[str(f.type).removesuffix(" | None")] for f in fields(kind)}
    for kind in (*_KINDS.values(), Mark)
}
MARKS = frozenset({"epoch", "eval", "checkpoint", "note"})


class StreamError(ValueError):
    """A line that is not an event; the message says which line and why."""


def encode(event: Event) -> str:
    """One event as one line of JSON, without the newline."""
    name = event.kind if isinstance(event, Mark) else _NAMES[type(event)]
    known = {
        f.name: getattr(event, f.name)
        for f in fields(event)
        if f.name != "kind" and getattr(event, f.name) is not None
    }
    return json.dumps({"event": name, **known}, separators=(",", ":"))


def decode(line: str | bytes) -> Event:
    """The event on one line; StreamError where the line is not one."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise StreamError(f"not JSON: {line[:80]!r}") from error
    if not isinstance(found, dict) or "event" not in found:
        raise StreamError(f"no event on this line: {line[:80]!r}")
    return from_object(found)


def from_object(found: dict[str, Any]) -> Event:
    name = str(found.pop("event"))
    kind = Mark if name in MARKS else _KINDS.get(name)
    if kind is None:
        raise StreamError(f"unknown event {name!r}")
    if kind is Mark:
        found["kind"] = name
    # A newer writer may say more than this reader knows; what it adds is not an error.
    types = _FIELDS[kind]
    known = {k: v for k, v in found.items() if k in types and v is not None}
    for field, value in known.items():
        if not isinstance(value, types[field]) or isinstance(value, bool):
            raise StreamError(f"'{field}' of this {name} event cannot be {short(value)}")
    if kind in (RunStart, Step, Mark, RunEnd):
        known.setdefault("mono", None)
        known.setdefault("wall", None)
    if kind is Step:
        known.setdefault("samples", None)
    if "throttle" in known:
        known["throttle"] = tuple(known["throttle"])
    try:
        if "scope" in known:
            known["scope"] = Scope(known["scope"])
        return kind(**known)
    except (TypeError, ValueError) as error:
        raise StreamError(f"incomplete {name} event: {error}") from error


def read(path: Path) -> Iterator[Event]:
    """The events of one file; a last line cut short by a killed writer is left out, any other is an error."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                yield decode(line)
            except StreamError as error:
                if not line.endswith(b"\n"):
                    return
                raise StreamError(f"{path.name}:{number}: {error}") from error


def write(path: Path, events: Iterable[Event]) -> None:
    path.write_text("".join(encode(event) + "\n" for event in events), encoding="utf-8")
