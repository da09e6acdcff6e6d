"""Dataclasses as plain JSON values and back, with every value's type checked on the way.

What lies in a folder may have been edited, cut short or written by another version: a value of the wrong type
is a DecodeError that names its place, never a surprise somewhere else.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from enum import Enum
from functools import cache, partial
from math import isfinite
from reprlib import repr as short
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

# A field with this metadata may hold NaN and infinities, as a loss that diverged does.
ANY_FLOAT = {"any_float": True}


# A field with this metadata holds pairs of names and values that stand among the fields of their object, each
# under a name that begins with the prefix: the axes of a workload, the metrics of an evaluation.
def flattened(prefix: str = "") -> dict[str, str]:
    return {"prefix": prefix}


# What a database column and every other program can hold.
LARGEST_INT = 1 << 63
KINDS = {int: "a whole number", float: "a number", str: "text", bool: "true or false", dict: "an object"}

# Most values of most objects, which need no look at what else they may be.
PLAIN = frozenset({str, int, float, bool, type(None)})
MOST_SHARED = 4096
NOTHING: Mapping[str, Any] = types.MappingProxyType({})

T = TypeVar("T")
Convert = Callable[[Any], Any]


class DecodeError(ValueError):
    """A value that its field cannot hold; `place` is where, as in `figure.window.first`."""

    def __init__(self, expected: str, value: Any, place: str = "") -> None:
        super().__init__(f"'{place}' must be {expected}, not {short(value)}" if place else expected)
        self.expected, self.value, self.place = expected, value, place

    def below(self, name: str) -> DecodeError:
        return DecodeError(self.expected, self.value, f"{name}.{self.place}" if self.place else name)


def encode(value: Any) -> Any:
    """Return dataclasses, enums and tuples as what JSON can hold."""
    kind = type(value)
    if kind in PLAIN:
        return value
    if is_dataclass(kind):
        plain = {}
        for name, prefix in _encoded_fields(kind):
            if prefix is None:
                plain[name] = encode(getattr(value, name))
            else:
                plain.update((prefix + inner, item) for inner, item in getattr(value, name))
        return plain
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return [encode(item) for item in value]
    return value


@cache
def _encoded_fields(kind: Any) -> tuple[tuple[str, str | None], ...]:
    return tuple((field.name, field.metadata.get("prefix")) for field in fields(kind))


def decode(kind: type[T], plain: Any, **given: Any) -> T:
    """Return the dataclass that `encode` was given; DecodeError where a value cannot be one of its fields.

    Unknown names are a newer version's and passed over; a missing one takes the field's default. Fields that
    are `given` are taken from there.
    """
    decoded: T = _dataclass(kind, frozenset(given), plain, given)
    return decoded


def _shared(kind: Any, plain: Any) -> Any:
    """Decode equal objects once: thousands of trials have a few keys among them."""
    try:
        # 1 and true are equal, and only one of them is a count.
        content = kind, tuple(plain.items()), tuple(map(type, plain.values()))
        known = _SHARED.get(content)
    except (TypeError, AttributeError):  # it holds a list, or is no object
        return _dataclass(kind, frozenset(), plain)
    return known or _remember(_SHARED, content, _dataclass(kind, frozenset(), plain))


_SHARED: dict[Any, Any] = {}
_PLANS: dict[Any, _Plan] = {}


def _remember(memory: dict[Any, T], content: Any, value: T) -> T:
    if len(memory) >= MOST_SHARED:
        memory.clear()
    memory[content] = value
    return value


def _dataclass(kind: Any, elsewhere: frozenset[str], plain: Any, given: Mapping[str, Any] = NOTHING) -> Any:
    if type(plain) is not dict:
        raise DecodeError("an object", plain)
    # Thousands of objects have the same names and types: what each field then needs is worked out once.
    shape = kind, elsewhere, tuple(plain), tuple(map(type, plain.values()))
    plan = _PLANS.get(shape) or _remember(_PLANS, shape, _Plan.of(kind, elsewhere, plain))
    values = {**plan.defaults, **plain}
    for name, make in plan.made:
        values[name] = make()
    for name in plan.unknown:
        del values[name]
    values.update(given)
    name = ""
    try:
        for name, convert in plan.converted:
            values[name] = convert(values[name])
        for name, prefix, known in plan.flattened:
            values[name] = _pairs(plain, prefix, known)
    except DecodeError as error:
        raise error.below(name) from None
    # `__init__` of a frozen dataclass sets one attribute after the other, which takes three times as long.
    instance = object.__new__(kind)
    object.__setattr__(instance, "__dict__", values)
    return instance


@dataclass(frozen=True)
class _Plan:
    """How an object of certain names and types becomes a dataclass."""

    defaults: dict[str, Any]
    made: tuple[tuple[str, Callable[[], Any]], ...]
    unknown: tuple[str, ...]
    converted: tuple[tuple[str, Convert], ...]
    flattened: tuple[tuple[str, str, frozenset[str]], ...]

    @classmethod
    def of(cls, kind: Any, elsewhere: frozenset[str], plain: dict[str, Any]) -> _Plan:
        converts, defaults, factories = _fields(kind)
        own = converts.keys() - elsewhere
        absent = [name for name in converts if name in own and name not in {**defaults, **plain}]
        if required := [name for name in absent if name not in factories]:
            raise DecodeError("there", None).below(required[0])
        return cls(
            defaults,
            tuple((name, factories[name]) for name in absent),
            tuple(name for name in plain if name not in own),
            tuple(
                (name, converts[name][1])
                for name, value in plain.items()
                if name in own and type(value) not in converts[name][0]
            ),
            _flattened(kind),
        )


@cache
def _fields(
    kind: Any,
) -> tuple[dict[str, tuple[frozenset[type], Convert]], dict[str, Any], dict[str, Callable[[], Any]]]:
    """Types that need no check and the converter of each field; the fields' defaults, and what makes them."""
    assert not hasattr(kind, "__post_init__")
    hints = get_type_hints(kind)
    own = [f for f in fields(kind) if "prefix" not in f.metadata]
    converts = {f.name: (_unchecked(hints[f.name]), _convert(hints[f.name], f.metadata)) for f in own}
    defaults = {f.name: f.default for f in fields(kind) if f.default is not MISSING}
    return converts, defaults, {f.name: f.default_factory for f in own if callable(f.default_factory)}


@cache
def _flattened(kind: Any) -> tuple[tuple[str, str, frozenset[str]], ...]:
    """Name and prefix of each field whose pairs stand among the others, and the names of those others."""
    known = frozenset(f.name for f in fields(kind) if "prefix" not in f.metadata)
    return tuple((f.name, f.metadata["prefix"], known) for f in fields(kind) if "prefix" in f.metadata)


def _pairs(plain: dict[str, Any], prefix: str, known: frozenset[str]) -> tuple[tuple[str, Any], ...]:
    """The names of an object that no field has, in their order; null is not there."""
    own = [name for name in plain if name not in known and name.startswith(prefix)]
    return tuple((name[len(prefix) :], _scalar(name, plain[name])) for name in own if plain[name] is not None)


def _scalar(name: str, value: Any) -> Any:
    if type(value) is str or type(value) is bool:
        return value
    try:
        return _float(value)
    except DecodeError as error:
        raise error.below(name) from None


def _unchecked(hint: Any) -> frozenset[type]:
    """What is right whatever its value: text, truth values, and None where there may be nothing."""
    kinds = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    return frozenset(kind for kind in kinds if kind in (str, bool, type(None)))


def _convert(hint: Any, metadata: Mapping[Any, Any] = NOTHING) -> Convert:
    """How a field of this type is read; None is right already where it may be."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        (inner,) = (each for each in arguments if each is not type(None))
        return _convert(inner, metadata)
    if origin is tuple:
        if arguments[1:] == (...,):
            return partial(_items, _convert(arguments[0]))
        return partial(_row, tuple(map(_convert, arguments)))
    if origin is Literal:
        return partial(_one_of, arguments)
    if origin in (dict, Mapping):
        return partial(_mapping, _convert(arguments[1]))
    if isinstance(hint, type) and is_dataclass(hint):
        return partial(_shared, hint) if _flattened(hint) else partial(_dataclass, hint, frozenset())
    if isinstance(hint, type) and issubclass(hint, Enum):
        return partial(_enum, hint)
    if hint is float:
        return _any_float if metadata == ANY_FLOAT else _float
    if hint is int:
        return _int
    return (lambda value: value) if hint is Any else partial(_exactly, hint)


def _items(convert: Convert, value: Any) -> tuple[Any, ...]:
    if type(value) is not list:
        raise DecodeError("a list", value)
    return tuple(map(convert, value))


def _row(converts: tuple[Convert, ...], value: Any) -> tuple[Any, ...]:
    if type(value) is not list or len(value) != len(converts):
        raise DecodeError(f"a list of {len(converts)}", value)
    return tuple(convert(item) for convert, item in zip(converts, value, strict=True))


def _mapping(convert: Convert, value: Any) -> dict[str, Any]:
    if type(value) is not dict:
        raise DecodeError("an object", value)
    return {key: convert(item) for key, item in value.items()}


def _enum(kind: type[Enum], value: Any) -> Enum:
    try:
        return kind(value)
    except ValueError:
        raise DecodeError(f"one of {', '.join(str(each.value) for each in kind)}", value) from None


def _one_of(choices: tuple[str, ...], value: Any) -> Any:
    if value not in choices:
        raise DecodeError(f"one of {', '.join(choices)}", value)
    return value


def _float(value: Any) -> float:
    if type(value) is float and isfinite(value):
        return value
    if type(value) is int and abs(value) < LARGEST_INT:
        return value
    raise DecodeError("a finite number", value)


def _any_float(value: Any) -> float:
    return value if type(value) is float else _float(value)


def _int(value: Any) -> int:
    if type(value) is not int or not -LARGEST_INT <= value < LARGEST_INT:
        raise DecodeError("a whole number", value)
    return value


def _exactly(kind: type, value: Any) -> Any:
    if not isinstance(value, kind):
        raise DecodeError(KINDS[kind], value)
    return value
