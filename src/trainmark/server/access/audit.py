"""The audit log: who did what, when and from where. Entries are added, never changed."""

from __future__ import annotations

import time

from sqlalchemy import Connection, insert

from trainmark.server.database.models import SHORT, AuditTable

LONGEST_DETAIL = 1000


def record(
    connection: Connection,
    action: str,
    subject: str,
    token: str | None = None,
    address: str | None = None,
    detail: str = "",
) -> None:
    connection.execute(
        insert(AuditTable).values(
            time=time.time(),
            token=token,
            address=address,
            action=action,
            subject=_plain(subject)[:SHORT],
            detail=_plain(detail)[:LONGEST_DETAIL],
        )
    )


def _plain(text: str) -> str:
    """What both databases can hold: no NUL, no half of a surrogate pair."""
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")
