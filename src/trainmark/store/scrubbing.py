"""Secrets and home paths, masked in the events that are kept and in the packed copy of a run.

Each in the packed copy is noted by place and kind, never by value.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from trainmark.base.files import whole_file
from trainmark.base.secret_patterns import Likelihood
from trainmark.base.secret_text import mask_text
from trainmark.base.secrets import HIDDEN, is_secret, scrub, scrub_text, secret_values
from trainmark.events.stream import StreamError, line_blocks
from trainmark.store.files import json_text
from trainmark.store.manifest import Scrubbed
from trainmark.store.trial import EVENTS

FACTS = b'"facts"'


def scrub_events(trial: Path) -> None:
    """Rewrite the event files of a trial whose facts hold secrets; those that cannot be read are left."""
    for path in sorted((trial / EVENTS).glob("rank*.jsonl")):
        with contextlib.suppress(OSError, StreamError):
            if any(_scrubbed(line) != line for line in _lines_with_facts(path)):
                _rewrite(path)


def _lines_with_facts(path: Path) -> Iterator[bytes]:
    """Steps have none, so that most blocks are passed over after one search."""
    for block in line_blocks(path):
        if FACTS in block:
            yield from (line for line in block.splitlines(keepends=True) if FACTS in line)


def _rewrite(path: Path) -> None:
    with whole_file(path, durable=False) as out:
        for block in line_blocks(path):
            out.writelines(map(_scrubbed, block.splitlines(keepends=True)))


def _scrubbed(line: bytes) -> bytes:
    if FACTS not in line:
        return line
    try:
        event = json.loads(line)
        if scrub(event.get("facts")) == event.get("facts"):
            return line
    except (ValueError, RecursionError, AttributeError):
        return line
    event["facts"] = scrub(event["facts"])
    return json.dumps(event, separators=(",", ":")).encode() + b"\n" * line.endswith(b"\n")


SECRET, POSSIBLE, HOME = "secret", "possible secret", "home path"
TILDE = "~"
# Homes of other users and of other machines, as they stand in the logs of a cluster, `/data/home/ada` too.
# Before them: no part of another path, but `-I/home/ada` and `file:///home/ada` are.
BEFORE_HOME = r"(?:(?<=file://)|(?<=-[A-Z])|(?<=%2[fF])|(?<![\w.~/\\-]))"
SLASH = r"(?:\\{0,4}/|%2[fF])"
USER = r"(?:(?!%2[fF])[^/\s:;,'\"\\<>|()\[\]{}&?#])+"
ANY_HOME = re.compile(
    rf"{BEFORE_HOME}(?:(?:{SLASH}[\w.-]{{1,64}}){{0,3}}?{SLASH}(?:home|homes|Users|users){SLASH}{USER}|/root(?![\w.-]))"
    rf"|(?<![A-Za-z])[A-Za-z]:[\\/]{{1,4}}(?i:users)[\\/]{{1,4}}{USER}"
)
# `NAME: value` of a suite.
SETTING = re.compile(
    r"(?<![\w.-])(?P<name>[\"']?[A-Za-z_][\w.-]*[\"']?)\s*:[ \t]+"
    r"(?P<value>\"[^\"\n]*\"|'[^'\n]*'|(?!\S*:\s)[^\s,}\]{\[][^\s,}\]]*)"
)
NUMBER = re.compile(r"[\"']?[-+]?[\d.,_]+(?:[eE][-+]?\d+)?%?[\"']?|true|false|null|~|None|\*+", re.IGNORECASE)
HOME_HINTS = ("home", "users", "/root")
# Files whose names are all ours: a trial's `key` is no secret.
OWN_NAMES = frozenset({"run.json", "trial.json", "figure.json", "fabric.json", "light.json", "ended.json"})
# Shorter values occur by chance.
SHORTEST_VALUE = 8
MOST_PLACES = 20
# Lines of events that hold text: all but steps.
EVENT_TEXT = re.compile(rb'"facts"|/')


class Scrubber:
    """What to mask in the files of one run, and what has been masked so far."""

    def __init__(
        self, home: Path | None = None, environment: Mapping[str, str] | None = None, suite: str = ""
    ) -> None:
        """Values of secret variables, here and in the suite, are masked wherever they stand by themselves."""
        variables = os.environ if environment is None else environment
        values = {*secret_values(variables), *_setting_values(suite)}
        long_enough = sorted(
            (value for value in values if len(value) >= SHORTEST_VALUE), key=len, reverse=True
        )
        self._values = re.compile("|".join(map(re.escape, long_enough))) if long_enough else None
        own = str(home or Path.home())
        homes = [path for path in sorted({own, os.path.realpath(own)}) if path != "/"]
        self._homes = [_home_pattern(path) for path in homes]
        self._home_hints = (*HOME_HINTS, *(path.lower() for path in homes))

    def member(self, name: str, data: bytes) -> tuple[bytes, list[Scrubbed]]:
        """Return the content of a member with its secrets and homes masked, and what was masked."""
        by_suffix = {".json": self.json, ".jsonl": self.json_lines}
        return by_suffix.get(Path(name).suffix, self.text)(name, data)

    def json(self, member: str, data: bytes) -> tuple[bytes, list[Scrubbed]]:
        """Scrub a JSON file value by value; one that is no JSON is scrubbed as text."""
        try:
            clean, notes = self._value(member, json.loads(data), Path(member).name in OWN_NAMES)
        except (ValueError, RecursionError):
            return self.text(member, data)
        if not notes:
            return data, []
        return json_text(clean).encode("utf-8", "backslashreplace"), notes

    def json_lines(self, member: str, data: bytes) -> tuple[bytes, list[Scrubbed]]:
        """Scrub the lines that hold text; those of steps hold numbers alone and stay as they are."""
        lines, places = data.splitlines(keepends=True), _Places(member)
        every_line = self._values is not None and self._values.search(data.decode("utf-8", "replace"))
        for number, line in enumerate(lines):
            if not every_line and not EVENT_TEXT.search(line):
                continue
            try:
                value, notes = self._value(member, json.loads(line), own_names=False)
                clean = json.dumps(value, separators=(",", ":")).encode() + b"\n" * line.endswith(b"\n")
            except (ValueError, RecursionError):
                clean, notes = self.text(member, line)
            if notes:
                lines[number] = clean
                for note in notes:
                    places.add(note.kind, *(f"line {number + 1}, {place}" for place in note.places))
        return b"".join(lines), places.notes()

    def text(self, member: str, data: bytes) -> tuple[bytes, list[Scrubbed]]:
        """Scrub a log or a suite line by line; bytes that are no UTF-8 stay as they are."""
        text, places = data.decode("utf-8", "surrogateescape"), _Places(member)
        masked, found = mask_text(text)
        lines = masked.split("\n")
        for number in self._values_in(lines) if self._values and self._values.search(masked) else ():
            lines[number] = self._without_values(lines[number])
            found[number] = Likelihood.SURE
        for number in sorted(found):
            places.add(SECRET if found[number] is Likelihood.SURE else POSSIBLE, f"line {number + 1}")
        lowered = masked.lower()
        hints = [hint for hint in self._home_hints if hint in lowered]  # most are nowhere in a log
        lowered_lines = lowered.split("\n") if hints else []
        for number in sorted({n for hint in hints for n, line in enumerate(lowered_lines) if hint in line}):
            line, lines[number] = lines[number], self._without_homes(lines[number])
            if lines[number] != line:
                places.add(HOME, f"line {number + 1}")
        return "\n".join(lines).encode("utf-8", "surrogateescape"), places.notes()

    def _values_in(self, lines: list[str]) -> list[int]:
        return [number for number, line in enumerate(lines) if self._without_values(line) != line]

    def _value(self, member: str, plain: Any, own_names: bool) -> tuple[Any, list[Scrubbed]]:
        places = _Places(member)
        clean = _mapped(_masked_text(plain) if own_names else scrub(plain), self._without_values)
        if (places_of_all := list(_changed_places(plain, clean))) and not own_names:
            sure = _mapped(scrub(plain, Likelihood.SURE), self._without_values)
            surely = set(_changed_places(plain, sure))
        else:
            surely = set(places_of_all)
        places.add(SECRET, *(place for place in places_of_all if place in surely))
        places.add(POSSIBLE, *(place for place in places_of_all if place not in surely))
        without_homes = _mapped(clean, self._without_homes)
        places.add(HOME, *_changed_places(clean, without_homes))
        return without_homes, places.notes()

    def _without_values(self, text: str) -> str:
        """Mask known values that stand without their names."""
        return self._values.sub(HIDDEN, text) if self._values else text

    def _without_homes(self, text: str) -> str:
        for home in self._homes:
            text = home.sub(TILDE, text)
        return ANY_HOME.sub(TILDE, text)


class _Places:
    """Places in one member by kind of what was masked there."""

    def __init__(self, member: str) -> None:
        self._member = member
        self._places: dict[str, list[str]] = {}
        self._counts: dict[str, int] = {}

    def add(self, kind: str, *places: str) -> None:
        if places:
            first = self._places.setdefault(kind, [])
            first += places[: MOST_PLACES - len(first)]
            self._counts[kind] = self._counts.get(kind, 0) + len(places)

    def notes(self) -> list[Scrubbed]:
        return [
            Scrubbed(self._member, kind, self._counts[kind], tuple(places))
            for kind, places in self._places.items()
        ]


def _home_pattern(home: str) -> re.Pattern[str]:
    """A home of several parts is one wherever it stands; `/root` alone may be part of another path."""
    before = BEFORE_HOME if home.count("/") == 1 else "(?<!:/)"  # the host of http://home/
    return re.compile(rf"{before}{re.escape(home)}(?![\w.-])")


def _masked_text(plain: Any) -> Any:
    """Mask secrets by their shape, and by their name only in the variables of a trial."""
    masked = _mapped(plain, scrub_text)
    if isinstance(plain, dict) and isinstance(variables := plain.get("environment"), dict):
        return {**masked, "environment": scrub(variables)}
    return masked


def _setting_values(text: str) -> Iterator[str]:
    """Values of secret names in a suite, which may stand without their name in a log."""
    for match in SETTING.finditer(text):
        if is_secret(match["name"].strip("\"'")) and not NUMBER.fullmatch(match["value"]):
            yield match["value"].strip("\"'")


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    """Return plain JSON with every text in it changed, keys included."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(key): _mapped(inner, change) for key, inner in value.items()}
    if isinstance(value, list):
        return [_mapped(inner, change) for inner in value]
    return value


def _changed_places(before: Any, after: Any, place: str = "") -> Iterator[str]:
    """Yield the places of values that changed, under their names after the change."""
    if isinstance(before, dict) and isinstance(after, dict) and len(before) == len(after):
        for (old_name, old), (name, new) in zip(before.items(), after.items(), strict=True):
            where = f"{place}.{name}" if place else name
            if old_name != name:
                yield where
            yield from _changed_places(old, new, where)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, (old, new) in enumerate(zip(before, after, strict=True)):
            yield from _changed_places(old, new, f"{place}[{number}]")
    elif type(before) is not type(after) or (before != after and before == before):
        yield place
