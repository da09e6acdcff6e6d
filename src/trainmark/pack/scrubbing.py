"""Secrets and home paths, masked in the packed copy; each is noted by place and kind, never by value."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from trainmark.pack.manifest import Scrubbed
from trainmark.secret import HIDDEN, SHAPES, is_secret, scrub, scrub_text, secret_values

SECRET, HOME = "secret", "home path"
TILDE = "~"
# Homes of other users and of other machines, as they stand in the logs of a cluster.
# Before them: no part of another path, but `-I/home/ada` and `file:///home/ada` are.
BEFORE_HOME = r"(?:(?<=file://)|(?<=-[A-Z])|(?<![\w.~/-]))"
ANY_HOME = re.compile(rf"{BEFORE_HOME}/(?:(?:home|Users)/[^/\s:;,'\"\\<>|()\[\]{{}}]+|root(?![\w.-]))")
# `NAME: value`, as in YAML and in what programs print of their settings.
# The name begins where a word does, or a line of a million letters would be searched from each of them.
SETTING = re.compile(
    r"(?<![\w.-])(?P<name>[\"']?[A-Za-z_][\w.-]*[\"']?)(?P<colon>\s*:[ \t]+)"
    r"(?P<value>\"[^\"\n]*\"|'[^'\n]*'|(?!\S*:\s)[^\s,}\]{\[][^\s,}\]]*)"
)
NUMBER = re.compile(r"[\"']?[-+]?[\d.,_]+(?:[eE][-+]?\d+)?%?[\"']?|true|false|null|~|None|\*+", re.IGNORECASE)
# In lower case: a line without any of these has no secret that the rules of `secret` know, and no home.
SECRET_HINTS = (
    "key", "secret", "token", "pass", "pwd", "cred", "auth", "bearer", "cookie", "pat", "dsn", "webhook",
    "connection", "uri", "url", "://", "gho_", "ghp_", "ghr_", "ghs_", "ghu_", "hf_", "npm_", "pypi-", "aiza",
    "sk-", "xox", "akia", "asia", "eyj",
)  # fmt: skip
HOME_HINTS = ("/home/", "/users/", "/root")
PRIVATE_KEY = SHAPES[0]
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
        return (json.dumps(clean, indent=1, ensure_ascii=False) + "\n").encode(
            "utf-8", "backslashreplace"
        ), notes

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
        original = text.split("\n")
        # A key has many lines: their number stays.
        lines = PRIVATE_KEY.sub(lambda key: HIDDEN + "\n" * key.group().count("\n"), text).split("\n")
        has_values = self._values is not None and self._values.search(text)
        lowered_text = text.lower()  # most hints are nowhere in a log, and need not be sought in its lines
        secret_hints = [hint for hint in SECRET_HINTS if hint in lowered_text]
        home_hints = [hint for hint in self._home_hints if hint in lowered_text]
        for number, line in enumerate(lines):
            lowered = line.lower()
            if has_values or any(hint in lowered for hint in secret_hints):
                lines[number] = line = self._without_secrets(scrub_text(line))
            if line != original[number]:
                places.add(SECRET, f"line {number + 1}")
            if any(hint in lowered for hint in home_hints):
                lines[number] = self._without_homes(line)
                if lines[number] != line:
                    places.add(HOME, f"line {number + 1}")
        return "\n".join(lines).encode("utf-8", "surrogateescape"), places.notes()

    def _value(self, member: str, plain: Any, own_names: bool) -> tuple[Any, list[Scrubbed]]:
        places = _Places(member)
        masked = _masked_text(plain) if own_names else scrub(plain)
        without_secrets = _mapped(masked, self._without_secrets)
        places.add(SECRET, *_changed_places(plain, without_secrets))
        clean = _mapped(without_secrets, self._without_homes)
        places.add(HOME, *_changed_places(without_secrets, clean))
        return clean, places.notes()

    def _without_secrets(self, text: str) -> str:
        """Mask what `secret` does not: settings after a colon, and known values without their names."""
        text = SETTING.sub(_masked_setting, text)
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


def _masked_setting(match: re.Match[str]) -> str:
    if not is_secret(match["name"].strip("\"'")) or NUMBER.fullmatch(match["value"]):
        return match.group()
    return f"{match['name']}{match['colon']}{HIDDEN}"


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
