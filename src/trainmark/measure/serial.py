"""Figures as plain dictionaries that JSON can hold, and back without loss."""

from __future__ import annotations

import types
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from trainmark.measure.figure import Result, TrialFigure


def figure_to_dict(figure: TrialFigure) -> dict[str, Any]:
    plain: dict[str, Any] = _plain(figure)
    return plain


def figure_from_dict(plain: dict[str, Any]) -> TrialFigure:
    """The figure that `figure_to_dict` was given; KeyError names a missing field."""
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
    return kind(**{name: _value(hint, plain[name]) for name, hint in _hints(kind).items()})


def _value(hint: Any, plain: Any) -> Any:
    """A plain value as the field's type hint wants it: a nested figure, an enum, a tuple, or itself."""
    if plain is None:
        return None
    if get_origin(hint) in (Union, types.UnionType):
        hint = next(kind for kind in get_args(hint) if kind is not type(None))
    if get_origin(hint) is tuple:
        return tuple(_value(get_args(hint)[0], item) for item in plain)
    if is_dataclass(hint):
        return _rebuilt(hint, plain)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint(plain)
    return plain


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)
