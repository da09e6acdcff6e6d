"""JSON of the API, of which parts are sent as the database stores them."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest

from trainmark.server.api.operations import changed_facts, encoded_rows


@dataclass
class Measured:
    name: str
    rate: float | None
    values: list[float]
    doubts: list[str]


def test_stored_json_stands_unchanged_beside_values_that_are_escaped():
    rows = [('a "quoted"\n name', None, "[1.50, 2]", '["few-trials"]'), ("二", 0.1, "[]", "[]")]
    assert json.loads(encoded_rows(Measured, rows, stored=2)) == [
        {"name": 'a "quoted"\n name', "rate": None, "values": [1.5, 2], "doubts": ["few-trials"]},
        {"name": "二", "rate": 0.1, "values": [], "doubts": []},
    ]


def test_a_row_with_too_few_values_is_an_error_and_not_a_shorter_object():
    with pytest.raises(ValueError, match="shorter"):
        encoded_rows(Measured, [("a", "[1]", "[]")], stored=2)


SHARED = {"driver": "550", "kernel": "6.1"}


def test_facts_differ_by_own_ones_where_the_shared_ones_are_the_same():
    before, after = ({"commit": "a", "clock_mhz": "1980"}, SHARED), ({"commit": "b"}, SHARED)
    assert changed_facts(before, after) == {"clock_mhz": None, "commit": "b"}


def test_facts_differ_by_shared_ones_of_another_set():
    before, after = ({"commit": "a"}, SHARED), ({"commit": "a"}, {"driver": "560"})
    assert changed_facts(before, after) == {"driver": "560", "kernel": None}
