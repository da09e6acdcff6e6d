"""A log format in a YAML file, ours in `formats/` and anybody's elsewhere: the same keys, no code.

A pattern is a text, or a list of texts that are joined. `{NAME}` in it stands for a part: one of the file's
own `parts`, or one that many formats share, such as {NUMBER} and {LOSS}.
"""

from __future__ import annotations

import importlib
import math
import re
import warnings
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from pathlib import Path
from reprlib import repr as short
from typing import Any, TypeVar

from trainmark.base import yaml_source
from trainmark.base.errors import UserError
from trainmark.events import Scope
from trainmark.logs.format import COUNTS, STEP_GROUPS, Format, Kind, Rate, Setting, TimeFormat

FOLDER = Path(__file__).with_name("formats")
SHARED_PARTS = FOLDER / "_parts.yaml"
PATTERNS = ("sign", "step", "start", "evaluation", "summary")
KEYS = frozenset(
    {
        *PATTERNS,
        "name",
        "title",
        "framework",
        "parts",
        "rate",
        "clock",
        "settings",
        "steps_a_line",
        "sign_once",
        "replace",
        "rewrite",
        "precedence",
    }
)
RATE_KEYS = frozenset({"unit", "scope", "kind", "every_rank"})
SETTING_KEYS = frozenset({"pattern", "means", "convert", "late"})
PART = re.compile(r"\{([A-Z][A-Z0-9_]*)\}")
LARGEST_BYTES = 1 << 20
EnumType = TypeVar("EnumType", bound=Enum)


DECIMAL = re.compile(r"\d{1,15}\.\d{1,15}")


def batch_from_time_and_rate(text: str) -> int:
    """The batch that rounded figures imply: seconds a step, the first, times samples a second, the last."""
    seconds, *_, rate = DECIMAL.findall(text)
    (shortest, longest), (slowest, fastest) = _rounded_from(seconds), _rounded_from(rate)
    return _only_integer(shortest * slowest, longest * fastest)


def batch_from_speed_and_rate(text: str) -> int:
    """Samples a second, the last number, over steps a second, the first."""
    speed, *_, rate = DECIMAL.findall(text)
    (fewest, most), (slowest, fastest) = _rounded_from(speed), _rounded_from(rate)
    if fewest <= 0:
        raise ValueError(f"{speed} steps a second tell nothing")
    return _only_integer(slowest / most, fastest / fewest)


def _rounded_from(text: str) -> tuple[float, float]:
    """The interval of the numbers that print as this."""
    half_a_digit = 0.5 * 10.0 ** -len(text.partition(".")[2])
    return float(text) - half_a_digit, float(text) + half_a_digit


def _only_integer(low: float, high: float) -> int:
    least, most = math.ceil(low), math.floor(high)
    if least != most or least < 1:
        raise ValueError(f"any batch from {least} to {most} would fit")
    return least


def devices_of_batch(text: str) -> int:
    """The whole batch, the first number, over that of one device, from the seconds and the rate behind it."""
    batch, _, figures = text.partition("\n")
    devices, rest = divmod(int(batch), batch_from_time_and_rate(figures.rpartition("elapse: ")[2]))
    if rest:
        raise ValueError("the whole batch is not a multiple of one device's")
    return devices


def first_by_last(text: str) -> int:
    """Sequences of a batch times their length; how often gradients are accumulated stands between."""
    first, *_, last = re.findall(r"\d+", text)
    return int(first) * int(last)


# What makes a value of a setting's text; ValueError where the text is not what was meant.
CONVERSIONS: dict[str, Callable[[str], Any]] = {
    "text": str,
    "int": int,
    "float": float,
    "grouped": lambda text: int(text.replace(",", "")),  # 1,024
    "scale": lambda text: text if text == "dynamic" else float(text),
    "count": lambda text: len(re.findall(r"\d+", text)),  # how many numbers `0,1,2` lists
    "quoted": lambda text: text.count("'") // 2,  # how many names in quotes
    "product": lambda text: math.prod(int(number) for number in re.findall(r"\d+", text)),  # of a mesh
    # Processes that torch.distributed.launch starts: those of a node times the nodes, one if not said.
    "launched": lambda text: math.prod(map(int, re.findall(r"--(?:nproc_per_node|nnodes)[= ](\d+)", text))),
    "first_by_last": first_by_last,
    "devices_of_batch": devices_of_batch,
    "batch_from_time_and_rate": batch_from_time_and_rate,
    "batch_from_speed_and_rate": batch_from_speed_and_rate,
}
# What a setting of this name is converted by where its file does not say; any other is text.
USUAL_CONVERSION = dict.fromkeys((*COUNTS, "train_samples"), "int") | {
    "learning_rate": "float",
    "momentum": "float",
    "loss_scale": "scale",
    "whole_rate": "float",
}
SETTINGS = frozenset(USUAL_CONVERSION) | {
    "precision",
    "framework",
    "framework_version",
    "device",
    "layout",
    "unit",
    "scope",
    "ended",
    "disordered",
    "platform",
    "benchmark",
    "status",
}


class FormatError(UserError):
    """What is wrong with the file, in one sentence."""


def custom_format(path: Path) -> Format:
    """The format that a user's file describes, every pattern tried; `sign` may be left out."""
    text = yaml_source.file_text(path, "a format", LARGEST_BYTES)
    format = _FormatFile(path).format(yaml_source.read(text, str(path)).data)
    check_patterns(format, path)
    return format


@cache
def our_format(name: str) -> Format:
    """The format of `formats/NAME.yaml`; the tests have tried its patterns, which are compiled when used."""
    path = FOLDER / f"{name}.yaml"
    return _FormatFile(path).format(yaml_source.packaged(path))


@cache
def _shared_parts() -> Mapping[str, str]:
    return _FormatFile(SHARED_PARTS).parts(yaml_source.packaged(SHARED_PARTS), {})


def check_patterns(format: Format, path: Path) -> None:
    """FormatError for a pattern that is no regular expression, or names what nothing understands."""
    texts = {**format.patterns, **{setting.name: setting.text for setting in format.settings}}
    for name, text in (*texts.items(), *((text, text) for text in format.replace or {})):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of sets that a later Python may read otherwise
                re.compile(text.encode())
        except (re.error, OverflowError, RecursionError) as error:
            raise FormatError(f"{path}: '{name}' is no regular expression: {error}.") from error
    groups = format.step.groupindex
    if unknown := sorted(set(groups) - STEP_GROUPS):
        known = ", ".join(sorted(STEP_GROUPS))
        raise FormatError(f"{path}: 'step' has a group '{unknown[0]}'; known are {known}.")
    if not groups:
        raise FormatError(f"{path}: 'step' has no named group, such as (?P<rate>…).")


class _FormatFile:
    """Reads one file, and names it in what it refuses."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._parts: Mapping[str, str] = {}

    def format(self, data: Any) -> Format:
        keys = self._mapping(data, "the format", KEYS)
        self._parts = self.parts(keys.get("parts", {}), _shared_parts())
        if "step" not in keys:
            raise self._wrong("'step' is missing, the pattern of a progress line")
        rate = self._mapping(keys.get("rate", {}), "'rate'", RATE_KEYS)
        lines = self._whole(keys, "steps_a_line", 1)
        if lines < 1:
            raise self._wrong("'steps_a_line' must be a whole number from 1 up")
        replace = self._mapping(keys.get("replace", {}), "'replace'")
        return Format(
            name=self._text(keys, "name") or self._path.name.removesuffix(".yaml").removesuffix(".yml"),
            title=self._text(keys, "title") or f"the format of {self._path.name}",
            framework=self._text(keys, "framework"),
            patterns={name: self._pattern(keys[name], name) for name in PATTERNS if keys.get(name)},
            rate=Rate(
                unit=self._text(rate, "unit") or "samples",
                scope=self._choice(rate, "scope", Scope, Scope.GLOBAL),
                kind=self._choice(rate, "kind", Kind, Kind.INSTANT),
                every_rank=bool(rate.get("every_rank", False)),
            ),
            clock=self._choice(keys, "clock", TimeFormat, TimeFormat.ISO),
            settings=tuple(self._settings(keys.get("settings", {}))),
            steps_a_line=lines,
            replace={self._pattern(text, "replace"): self._text(replace, text) or "" for text in replace},
            rewrite=self._rewrite(keys),
            precedence=self._whole(keys, "precedence", 0),
            sign_once=bool(keys.get("sign_once", False)),
        )

    def parts(self, data: Any, known: Mapping[str, str]) -> Mapping[str, str]:
        """Named parts of patterns; each may hold those before it."""
        self._parts = dict(known)
        for name, text in self._mapping(data, "'parts'").items():
            self._parts[name] = self._pattern(text, name)
        return self._parts

    def _settings(self, data: Any) -> list[Setting]:
        settings = self._mapping(data, "'settings'", SETTINGS)
        return [
            self._setting(name, one)
            for name, content in settings.items()
            for one in (content if isinstance(content, list) else [content])
        ]

    def _setting(self, name: str, content: Any) -> Setting:
        usual = USUAL_CONVERSION.get(name, "text")
        if isinstance(content, dict):
            keys = self._mapping(content, f"'{name}'", SETTING_KEYS)
            if (convert := keys.get("convert", usual)) not in CONVERSIONS:
                raise self._wrong(f"'convert' is {short(convert)}; known are {', '.join(CONVERSIONS)}")
            pattern = self._pattern(keys.get("pattern"), name)
            if "means" not in keys and "(?P<value>" not in pattern:
                raise self._wrong(f"'{name}' needs a group (?P<value>…) in its pattern, or 'means'")
            late = bool(keys.get("late", False))
            return Setting(name, pattern, keys.get("means"), CONVERSIONS[convert], late)
        if isinstance(content, str) and "(?P<value>" in (text := self._pattern(content, name)):
            return Setting(name, text, convert=CONVERSIONS[usual])
        if name not in COUNTS or (isinstance(content, int) and content > 0):
            # A fact that the log does not print, and the file's author knows.
            return Setting(name, "", means=content)
        raise self._wrong(f"'{name}' must be a whole number, or a pattern with a group (?P<value>…)")

    def _rewrite(self, keys: Mapping[str, Any]) -> Callable[..., Any] | None:
        """The function of `MODULE.FUNCTION` in `formats/`, imported when it is called."""
        name = self._text(keys, "rewrite")
        if name is None:
            return None
        module, _, function = name.partition(".")
        if not function.isidentifier() or not (module.isidentifier() and (FOLDER / f"{module}.py").exists()):
            raise self._wrong(f"'rewrite' is {short(name)}, no function of a module in {FOLDER.name}/")

        def rewrite(blocks: Any) -> Any:
            return getattr(importlib.import_module(f"trainmark.logs.formats.{module}"), function)(blocks)

        return rewrite

    def _mapping(self, value: Any, what: str, known: frozenset[str] | None = None) -> Mapping[str, Any]:
        if not isinstance(value, dict):
            raise self._wrong(f"{what} must be a mapping")
        if known is not None and (unknown := sorted(str(key) for key in value if key not in known)):
            listed = ", ".join(sorted(known))
            raise self._wrong(f"unknown key '{unknown[0]}' in {what}; known are {listed}")
        return value

    def _text(self, keys: Mapping[str, Any], name: str) -> str | None:
        value = keys.get(name)
        if value is not None and not isinstance(value, str):
            raise self._wrong(f"'{name}' must be text")
        return value

    def _whole(self, keys: Mapping[str, Any], name: str, default: int) -> int:
        value = keys.get(name, default)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self._wrong(f"'{name}' must be a whole number")
        return value

    def _pattern(self, value: Any, name: str) -> str:
        """A text, or texts that are joined, with what its parts stand for."""
        texts = value if isinstance(value, list) else [value]
        if not all(isinstance(text, str) for text in texts):
            raise self._wrong(f"'{name}' must be text")

        def part(match: re.Match[str]) -> str:
            if match[1] not in self._parts:
                raise self._wrong(f"'{name}' names a part {match[0]} that is nowhere; add it to 'parts'")
            return self._parts[match[1]]

        return PART.sub(part, "".join(texts))

    def _choice(
        self, keys: Mapping[str, Any], name: str, kind: type[EnumType], default: EnumType
    ) -> EnumType:
        if name not in keys:
            return default
        known = {choice.value: choice for choice in kind}
        # A list or a mapping cannot even be looked up.
        if not isinstance(keys[name], str) or keys[name] not in known:
            raise self._wrong(f"'{name}' is {short(keys[name])}; known are {', '.join(sorted(known))}")
        return known[keys[name]]

    def _wrong(self, what: str) -> FormatError:
        return FormatError(f"{self._path}: {what}.")
