"""A log format described in a YAML file, so that a new log needs no code."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path
from reprlib import repr as short
from typing import Any, TypeVar

from trainmark.base import yaml_source
from trainmark.base.errors import UserError
from trainmark.events import Scope
from trainmark.logs.format import COUNTS, STEP_GROUPS, Format, Kind, Rate, Setting, TimeFormat

KEYS = frozenset(
    {
        "name",
        "title",
        "framework",
        "sign",
        "step",
        "rate",
        "clock",
        "settings",
        "start",
        "evaluation",
        "summary",
        "steps_a_line",
    }
)
RATE_KEYS = frozenset({"unit", "scope", "kind", "every_rank"})
SETTINGS = COUNTS | {
    "precision",
    "loss_scale",
    "framework_version",
    "device",
    "layout",
    "momentum",
    "learning_rate",
}
LARGEST_BYTES = 1 << 20
EnumType = TypeVar("EnumType", bound=Enum)


class CustomFormatError(UserError):
    """What is wrong with the file, in one sentence."""


def custom_format(path: Path) -> Format:
    """The format that the file describes; `sign` may be left out, for the file is named by hand."""
    text = yaml_source.file_text(path, "a format", LARGEST_BYTES)
    reading = _KeyReader(path)
    keys = reading.mapping(yaml_source.read(text, str(path)).data, "the format", KEYS)
    step = reading.pattern(keys, "step")
    if step is None:
        raise CustomFormatError(f"{path}: 'step' is missing, the pattern of a progress line.")
    if unknown := sorted(set(step.groupindex) - STEP_GROUPS):
        known = ", ".join(sorted(STEP_GROUPS))
        raise CustomFormatError(f"{path}: 'step' has a group '{unknown[0]}'; known are {known}.")
    if not step.groupindex:
        raise CustomFormatError(f"{path}: 'step' has no named group, such as (?P<rate>…).")
    rate = reading.mapping(keys.get("rate", {}), "'rate'", RATE_KEYS)
    lines = keys.get("steps_a_line", 1)
    if not isinstance(lines, int) or isinstance(lines, bool) or lines < 1:
        raise CustomFormatError(f"{path}: 'steps_a_line' must be a whole number from 1 up.")
    return Format(
        name=reading.text(keys, "name") or path.stem,
        title=reading.text(keys, "title") or f"the format of {path.name}",
        framework=reading.text(keys, "framework"),
        sign=reading.pattern(keys, "sign") or step,
        step=step,
        rate=Rate(
            unit=reading.text(rate, "unit") or "samples",
            scope=reading.choice(rate, "scope", Scope, Scope.GLOBAL),
            kind=reading.choice(rate, "kind", Kind, Kind.INSTANT),
            every_rank=bool(rate.get("every_rank", False)),
        ),
        clock=reading.choice(keys, "clock", TimeFormat, TimeFormat.ISO),
        settings=reading.settings(keys.get("settings", {})),
        start=reading.pattern(keys, "start"),
        evaluation=reading.pattern(keys, "evaluation"),
        summary=reading.pattern(keys, "summary"),
        steps_a_line=lines,
    )


class _KeyReader:
    """Reads parts of one file, and names it in what it refuses."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def mapping(self, value: Any, what: str, known: frozenset[str]) -> Mapping[str, Any]:
        if not isinstance(value, dict):
            raise CustomFormatError(f"{self._path}: {what} must be a mapping.")
        if unknown := sorted(str(key) for key in value if key not in known):
            listed = ", ".join(sorted(known))
            raise CustomFormatError(
                f"{self._path}: unknown key '{unknown[0]}' in {what}; known are {listed}."
            )
        return value

    def text(self, keys: Mapping[str, Any], name: str) -> str | None:
        value = keys.get(name)
        if value is not None and not isinstance(value, str):
            raise CustomFormatError(f"{self._path}: '{name}' must be text.")
        return value

    def pattern(self, keys: Mapping[str, Any], name: str) -> re.Pattern[bytes] | None:
        text = self.text(keys, name)
        if text is None:
            return None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of sets that a later Python may read otherwise
                return re.compile(text.encode())
        except (re.error, OverflowError, RecursionError) as error:
            raise CustomFormatError(f"{self._path}: '{name}' is no regular expression: {error}.") from error

    def choice(self, keys: Mapping[str, Any], name: str, kind: type[EnumType], default: EnumType) -> EnumType:
        if name not in keys:
            return default
        known = {choice.value: choice for choice in kind}
        # A list or a mapping cannot even be looked up.
        if not isinstance(keys[name], str) or keys[name] not in known:
            listed = ", ".join(sorted(known))
            raise CustomFormatError(f"{self._path}: '{name}' is {short(keys[name])}; known are {listed}.")
        return known[keys[name]]

    def settings(self, value: Any) -> tuple[Setting, ...]:
        settings = []
        for name, content in self.mapping(value, "'settings'", SETTINGS).items():
            convert: Callable[[str], Any] = int if name in COUNTS else str
            if isinstance(content, str) and "(?P<value>" in content:
                pattern = self.pattern({name: content}, name)
                assert pattern is not None
                settings.append(Setting(name, pattern, convert=convert))
            elif name not in COUNTS or (isinstance(content, int) and content > 0):
                # A fact that the log does not print, and the file's author knows.
                settings.append(Setting(name, re.compile(b""), means=content))
            else:
                raise CustomFormatError(
                    f"{self._path}: '{name}' must be a whole number, or a pattern with a group (?P<value>…)."
                )
        return tuple(settings)
