"""How the values of a suite are read: each takes what YAML gave and returns it checked, or raises."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from math import inf
from reprlib import repr as short
from typing import Any, TypeVar

UNITS = {"s": 1, "m": 60, "h": 3600}
LONGEST_SECONDS = 10**8
LARGEST = 10**9
MOST_REPEATS = 10_000
# Names become folders.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

T = TypeVar("T")


def checked(kind: str, fits: Callable[[Any], object], convert: Callable[[Any], T]) -> Callable[[Any], T]:
    """Take what fits, converted; a refusal says what `kind` of value it takes."""

    def parse(value: Any) -> T:
        if not fits(value):
            raise ValueError(f"takes {kind}, not {short(value)}")
        return convert(value)

    return parse


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


text = checked("text", lambda value: isinstance(value, str) and value.strip(), str)
name = checked(
    "text of letters, digits, '.', '_' and '-'",
    lambda value: isinstance(value, str) and NAME.fullmatch(value),
    str,
)
words: Callable[[Any], tuple[str, ...]] = checked(
    "a list of words",
    lambda value: isinstance(value, list) and all(isinstance(word, str) for word in value),
    tuple,
)
loss_scale = checked(
    "'dynamic' or a number above zero",
    lambda value: value == "dynamic" or (_is_number(value) and 0 < value < 2**24),
    lambda value: "dynamic" if value == "dynamic" else f"{value:g}",
)
positive = checked("a number above 0", lambda value: _is_number(value) and 0 < value < inf, float)
number = checked("a number", _is_number, float)


def regular_expression(value: Any) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of sets that a later Python may read otherwise
            re.compile(text(value).encode())
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"takes a regular expression, not {short(value)}: {error}") from error
    return str(value)


def flag_or(*words: str) -> Callable[[Any], bool | str]:
    def parse(value: Any) -> bool | str:
        if isinstance(value, bool):
            return value
        if value in words:
            return str(value)
        known = ", ".join(("true", "false", *words[:-1]))
        raise ValueError(f"takes {known} or {words[-1]}, not {short(value)}")

    return parse


def count(value: Any) -> int:
    return _whole(value, least=1)


def count_or_none(value: Any) -> int:
    return _whole(value, least=0)


def repeat_count(value: Any) -> int:
    return _whole(value, least=1, most=MOST_REPEATS)


def one_of(*choices: Any) -> Callable[[Any], Any]:
    def parse(value: Any) -> Any:
        if value not in choices or isinstance(value, bool):
            *most, last = map(str, choices)
            known = f"{', '.join(most)} or {last}" if most else last
            raise ValueError(f"takes {known}, not {short(value)}")
        return value

    return parse


def duration(value: Any) -> float:
    """Seconds from `90`, `90s`, `30m`, `2h`."""
    seconds = value
    if isinstance(value, str) and (match := re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh])", value.strip())):
        seconds = float(match[1]) * UNITS[match[2]]
    if not _is_number(seconds) or not 0 < seconds <= LONGEST_SECONDS:
        raise ValueError(f"takes a time such as 90s, 30m or 2h, not {short(value)}")
    return float(seconds)


def relative_width(value: Any) -> float:
    """0.005 from `±0.5%`."""
    match = (
        re.fullmatch(r"(?:±|\+-)?\s*(\d+(?:\.\d+)?)\s*%", value.strip()) if isinstance(value, str) else None
    )
    if not match or not 0 < float(match[1]) < 100:
        raise ValueError(f"takes a width such as '±0.5%', not {short(value)}")
    return float(match[1]) / 100


def share(value: Any) -> float:
    """0.761 from `0.761` or `76.1%`."""
    if isinstance(value, str) and (match := re.fullmatch(r"(\d+(?:\.\d+)?)\s*%", value.strip())):
        value = float(match[1]) / 100
    if not _is_number(value) or not 0 < value <= 1:
        raise ValueError(f"takes a share such as 0.761 or 76.1%, not {short(value)}")
    return float(value)


def string_map(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise ValueError(f"takes NAME: value pairs, not {short(value)}")
    for key, item in value.items():
        if not VARIABLE.fullmatch(key):
            raise ValueError(f"holds {short(key)}, which cannot name a variable")
        # YAML reads `yes` as true and an empty value as null; a program would get "True" and "None".
        if not isinstance(item, str) and not _is_number(item):
            raise ValueError(f"takes text for {key}, not {short(item)}; put it in quotes")
    return {key: str(item) for key, item in value.items()}


def _whole(value: Any, least: int, most: int = LARGEST) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        end = "up" if most == LARGEST else f"to {most}"
        raise ValueError(f"takes a whole number from {least} {end}, not {short(value)}")
    return value
