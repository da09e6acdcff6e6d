"""Events as JSON lines: one object a line, `event` names its kind, absent fields are unknown."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from trainmark.events.schema import DeviceSample, Event, Mark, RunEnd, RunStart, Scope, Step

_KINDS: dict[str, type[RunStart | Step | DeviceSample | RunEnd]] = {
    "run_start": RunStart,
    "step": Step,
    "device_sample": DeviceSample,
    "run_end": RunEnd,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}
_FIELDS = {kind: frozenset(f.name for f in fields(kind)) for kind in (*_KINDS.values(), Mark)}
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
    except ValueError as error:
        raise StreamError(f"not JSON: {line[:80]!r}") from error
    if not isinstance(found, dict) or "event" not in found:
        raise StreamError(f"no event on this line: {line[:80]!r}")
    return from_object(found)


def from_object(found: dict[str, Any]) -> Event:
    name = found.pop("event")
    kind = Mark if name in MARKS else _KINDS.get(name)
    if kind is None:
        raise StreamError(f"unknown event {name!r}")
    if kind is Mark:
        found["kind"] = name
    # A newer writer may say more than this reader knows; what it adds is not an error.
    known = {k: v for k, v in found.items() if k in _FIELDS[kind]}
    if kind in (RunStart, Step, Mark, RunEnd):
        known.setdefault("mono", None)
        known.setdefault("wall", None)
    if kind is Step:
        known.setdefault("samples", None)
    if "scope" in known:
        known["scope"] = Scope(known["scope"])
    if "throttle" in known:
        known["throttle"] = tuple(known["throttle"])
    try:
        return kind(**known)
    except TypeError as error:
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
