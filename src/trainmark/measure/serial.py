"""Figures as plain dictionaries that JSON can hold, and back without loss."""

from __future__ import annotations

import types
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache, partial
from typing import Any, Union, get_args, get_origin, get_type_hints

from trainmark.measure.figure import Result, TrialFigure


def figure_to_dict(figure: TrialFigure) -> dict[str, Any]:
    plain: dict[str, Any] = _plain(figure)
    return plain


def figure_from_dict(plain: dict[str, Any]) -> TrialFigure:
    """The figure that `figure_to_dict` was given; KeyError names a missing field that has no default."""
    figure: TrialFigure = _rebuilt(TrialFigure, plain)
    return figure


def result_to_dict(result: Result) -> dict[str, Any]:
    plain: dict[str, Any] = _plain(result)
    return plain


def result_from_dict(plain: dict[str, Any]) -> Result:
    result: Result = _rebuilt(Result, plain)
    return result


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value


def _rebuilt(kind: Any, plain: dict[str, Any]) -> Any:
    return kind(
        **{
            name: plain[name] if read is None or plain[name] is None else read(plain[name])
            for name, read in _readers(kind).items()
            # What an earlier version did not know yet is as if it had not been measured.
            if name in plain or name not in _optional(kind)
        }
    )


@cache
def _optional(kind: Any) -> frozenset[str]:
    return frozenset(field.name for field in fields(kind) if field.default is not MISSING)


@cache
def _readers(kind: Any) -> dict[str, Callable[[Any], Any] | None]:
    """Worked out once a kind: ten thousand trials are read back in a second or two."""
    return {name: _reader(hint) for name, hint in get_type_hints(kind).items()}


def _reader(hint: Any) -> Callable[[Any], Any] | None:
    """How a field of this type is read: as a nested figure, an enum or a tuple; None for what is plain."""
    if get_origin(hint) in (Union, types.UnionType):
        hint = next(kind for kind in get_args(hint) if kind is not type(None))
    if get_origin(hint) is tuple:
        item = _reader(get_args(hint)[0])
        return tuple if item is None else lambda plain: tuple(map(item, plain))
    if is_dataclass(hint):
        return partial(_rebuilt, hint)
    return hint if isinstance(hint, type) and issubclass(hint, Enum) else None
