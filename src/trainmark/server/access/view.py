"""One consistent view of the database for a whole request: who asks, the newest push, and what is shown."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from sqlalchemy import Connection
from starlette.requests import Request

from trainmark.server.database.engine import reading


@contextlib.contextmanager
def viewing(request: Request) -> Iterator[Connection]:
    """Return the connection of the request; the first to ask opens it, and closes it when done."""
    opened: Connection | None = getattr(request.state, "view", None)
    if opened is not None:
        yield opened
        return
    with reading(request.app.state.engine) as connection:
        request.state.view = connection
        try:
            yield connection
        finally:
            request.state.view = None
