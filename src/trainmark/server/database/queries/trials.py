"""Trials as flat rows, page by page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select

from trainmark.server.database.models import Run, Trial


@dataclass(frozen=True)
class TrialPage:
    """`next` is what to ask `after` for the following page, None at the end."""

    trials: tuple[Mapping[str, Any], ...]
    next: int | None


def trial_rows(connection: Connection, run_uuid: str | None, after: int, most: int) -> TrialPage | None:
    """Return rows as `store.overview.trial_rows` has them; None where there is no such run."""
    chosen = select(Trial.id, Trial.row).where(Trial.id > after).order_by(Trial.id).limit(most)
    if run_uuid is not None:
        run_id = connection.execute(select(Run.id).where(Run.uuid == run_uuid)).scalar_one_or_none()
        if run_id is None:
            return None
        chosen = chosen.where(Trial.run_id == run_id)
    rows = connection.execute(chosen).all()
    return TrialPage(tuple(row.row for row in rows), rows[-1].id if len(rows) == most else None)
