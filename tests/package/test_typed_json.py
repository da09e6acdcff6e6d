"""Dataclasses from JSON: what does not fit its field is named with its place, never passed on."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import pytest

from trainmark.base.typed_json import ANY_FLOAT, DecodeError, decode, encode


class Colour(str, Enum):
    RED = "red"


@dataclass(frozen=True)
class Inner:
    count: int
    share: float | None = None


@dataclass(frozen=True)
class Outer:
    name: str
    flag: bool
    inner: Inner
    many: tuple[Inner, ...]
    pairs: tuple[tuple[str, int], ...]
    colour: Colour
    table: dict[str, float]
    anything: Any = None
    loss: float = field(default=0.0, metadata=ANY_FLOAT)
    facts: dict[str, str] = field(default_factory=dict)


OUTER = Outer("n", True, Inner(1), (Inner(2, 0.5),), (("a", 1),), Colour.RED, {"x": 1.5})


def test_a_value_comes_back_as_it_was_and_defaults_fill_what_is_missing():
    plain = encode(OUTER)
    assert decode(Outer, plain) == OUTER
    del plain["anything"], plain["loss"], plain["inner"]["share"]
    assert decode(Outer, {**plain, "of a newer version": 1}) == OUTER
    assert hash(decode(Inner, {"count": 1})) == hash(Inner(1))


def test_a_default_that_is_made_is_made_for_each():
    plain = encode(OUTER)
    del plain["facts"]
    first, second = decode(Outer, plain), decode(Outer, plain)
    assert first == OUTER and first.facts is not second.facts


def test_a_field_that_is_given_is_not_read():
    assert decode(Inner, {"count": "no number"}, count=7) == Inner(7)


def test_only_a_loss_may_be_no_number():
    assert math.isnan(decode(Outer, {**encode(OUTER), "loss": math.nan}).loss)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"name": None}, "'name' must be text, not None"),
        ({"flag": 1}, "'flag' must be true or false, not 1"),
        ({"inner": {"count": True}}, "'inner.count' must be a whole number, not True"),
        ({"inner": {"count": 2**63}}, "'inner.count' must be a whole number"),
        ({"inner": {"count": 1.0}}, "'inner.count' must be a whole number, not 1.0"),
        ({"inner": {"count": 1, "share": math.inf}}, "'inner.share' must be a finite number, not inf"),
        ({"inner": {}}, "'inner.count' must be there"),
        ({"inner": []}, "'inner' must be an object, not []"),
        ({"many": {}}, "'many' must be a list, not {}"),
        ({"many": [5]}, "'many' must be an object, not 5"),
        ({"pairs": [["a"]]}, "'pairs' must be a list of 2, not ['a']"),
        ({"colour": "blue"}, "'colour' must be one of red, not 'blue'"),
        ({"colour": [1]}, "'colour' must be one of red, not [1]"),
        ({"table": {"x": "1"}}, "'table' must be a finite number, not '1'"),
    ],
)
def test_a_value_of_another_type_is_named_with_its_place(change, sentence):
    with pytest.raises(DecodeError) as refused:
        decode(Outer, {**encode(OUTER), **change})
    assert sentence in str(refused.value)
