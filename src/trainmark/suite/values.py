"""How the values of a suite are read: each takes what YAML gave and returns it checked, or raises."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

UNITS = {"s": 1, "m": 60, "h": 3600}


def text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"takes text, not {value!r}")
    return value


def flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"takes true or false, not {value!r}")
    return value


def count(value: Any) -> int:
    return _whole(value, least=1)


def count_or_none(value: Any) -> int:
    return _whole(value, least=0)


def one_of(*choices: str) -> Callable[[Any], str]:
    def parse(value: Any) -> str:
        if value not in choices:
            raise ValueError(f"takes {', '.join(choices[:-1])} or {choices[-1]}, not {value!r}")
        return str(value)

    return parse


def loss_scale(value: Any) -> str:
    if value == "dynamic":
        return "dynamic"
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 2**24:
        raise ValueError(f"takes 'dynamic' or a number above zero, not {value!r}")
    return f"{value:g}"


def duration(value: Any) -> float:
    """Seconds from `90`, `90s`, `30m`, `2h`."""
    if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
        return float(value)
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh])", value.strip()) if isinstance(value, str) else None
    if not found or float(found[1]) == 0:
        raise ValueError(f"takes a time such as 90s, 30m or 2h, not {value!r}")
    return float(found[1]) * UNITS[found[2]]


def relative_width(value: Any) -> float:
    """0.005 from `±0.5%`."""
    found = (
        re.fullmatch(r"(?:±|\+-)?\s*(\d+(?:\.\d+)?)\s*%", value.strip()) if isinstance(value, str) else None
    )
    if not found or not 0 < float(found[1]) < 100:
        raise ValueError(f"takes a width such as '±0.5%', not {value!r}")
    return float(found[1]) / 100


def string_map(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise ValueError(f"takes NAME: value pairs, not {value!r}")
    return {text(key): str(item) for key, item in value.items()}


def text_list(value: Any) -> tuple[str, ...]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise ValueError(f"takes a list, not {value!r}")
    return tuple(str(item) for item in value)


def _whole(value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= 10**9:
        raise ValueError(f"takes a whole number from {least} up, not {value!r}")
    return value
