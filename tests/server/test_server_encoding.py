"""Rows as the database stores them, and the facts that differ from one result to the next."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from sqlalchemy import JSON
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from trainmark.server.api.operations import changed_facts
from trainmark.server.database.rows import RowKind


class MeasuredBase(DeclarativeBase):
    pass


class MeasuredTable(MeasuredBase):
    __tablename__ = "measured"
    name: Mapped[str] = mapped_column(primary_key=True)
    rate: Mapped[float | None]
    values: Mapped[list[float]] = mapped_column(JSON)
    facts: Mapped[dict[str, str]] = mapped_column(JSON)


@dataclass
class Measured:
    values: tuple[float, ...]
    name: str
    facts: dict[str, str]


KIND = RowKind(Measured, MeasuredTable)


def test_stored_json_is_asked_for_as_text_and_decoded_wherever_it_stands():
    assert "CAST(measured.values AS TEXT)" in str(KIND.select)
    rows = KIND.rows([("[1.50, 2]", 'a "quoted"\n name', "{}", 7), ("[]", "二", '{"driver": "550"}', 8)])
    assert rows == (Measured((1.5, 2), 'a "quoted"\n name', {}), Measured((), "二", {"driver": "550"}))
    assert KIND.rows([]) == ()


def test_a_row_with_too_few_values_is_an_error_and_not_another_row():
    with pytest.raises((TypeError, IndexError)):
        KIND.rows([("[1]", "a")])


SHARED = {"driver": "550", "kernel": "6.1"}


def test_facts_differ_by_own_ones_where_the_shared_ones_are_the_same():
    before, after = ({"commit": "a", "clock_mhz": "1980"}, SHARED), ({"commit": "b"}, SHARED)
    assert changed_facts(before, after) == {"clock_mhz": None, "commit": "b"}


def test_facts_differ_by_shared_ones_of_another_set():
    before, after = ({"commit": "a"}, SHARED), ({"commit": "a"}, {"driver": "560"})
    assert changed_facts(before, after) == {"driver": "560", "kernel": None}
