"""The lock of a server's folder: one server at a time, and no migration under a server."""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterator

from trainmark.errors import UserError
from trainmark.server.settings import Settings


@contextlib.contextmanager
def locked(settings: Settings) -> Iterator[None]:
    """UserError where another process has it."""
    settings.data.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (settings.data / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise UserError(
                f"{settings.data} is being served by another trainmark; stop it first."
            ) from error
        yield
