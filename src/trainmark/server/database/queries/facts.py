"""Recorded facts, which many results share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, select

from trainmark.server.database.models import FactSet


def facts_by_id(connection: Connection, ids: Iterable[int]) -> dict[int, dict[str, Any]]:
    rows = connection.execute(select(FactSet.id, FactSet.facts).where(FactSet.id.in_(set(ids))))
    return {row.id: row.facts for row in rows}
