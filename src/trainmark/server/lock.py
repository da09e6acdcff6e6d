"""The lock of a server's folder: one server at a time, and no migration under a server."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from collections.abc import Iterator

from trainmark.base.errors import UserError
from trainmark.server.settings import Settings


@contextlib.contextmanager
def locked(settings: Settings) -> Iterator[None]:
    """UserError where another process has it, or others may look into the folder."""
    settings.data.mkdir(parents=True, exist_ok=True, mode=0o700)
    if stat.S_IMODE(settings.data.stat().st_mode) & 0o077:
        raise UserError(f"{settings.data} is open to other users; run `chmod 700 {settings.data}`.")
    with os.fdopen(os.open(settings.data / "lock", os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise UserError(
                f"{settings.data} is being served by another trainmark; stop it first."
            ) from error
        yield
