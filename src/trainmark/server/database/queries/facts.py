"""Recorded facts, which many results share."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

from sqlalchemy import Connection, Select, bindparam, select

from trainmark.server.database.models import FactSet


@functools.cache
def _facts_select() -> Select[int, dict[str, Any]]:
    return select(FactSet.id, FactSet.facts).where(FactSet.id.in_(bindparam("ids", expanding=True)))


def facts_by_id(connection: Connection, ids: Iterable[int]) -> dict[int, dict[str, Any]]:
    rows = connection.execute(_facts_select(), {"ids": sorted(set(ids))})
    return {row.id: row.facts for row in rows}
