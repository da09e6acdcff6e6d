"""What is the server's own trouble, and no fault of a request: a full disk, a database that is away.

It is answered with a status that says "try again", takes one line of the log, and is held against no file.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass

from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

UNAVAILABLE, NO_ROOM = 503, 507
RETRY_SECONDS = 10
POSTGRES_DISK_FULL = "53100"


@dataclass(frozen=True)
class Fault:
    """`reading` still works with one that only keeps the server from writing."""

    status: int
    sentence: str
    reading: bool = False


FULL = Fault(NO_ROOM, "the server's disk is full; try again later.", reading=True)
READ_ONLY = Fault(UNAVAILABLE, "the server cannot write to its disk; try again later.", reading=True)
FAILING = Fault(UNAVAILABLE, "the server's disk fails; try again later.")
SCARCE = Fault(UNAVAILABLE, "the server has too much to do; try again in a moment.")
LOCKED = Fault(
    UNAVAILABLE, "the server's database is locked by another program; try again later.", reading=True
)
DAMAGED = Fault(UNAVAILABLE, "the server's database is damaged; an admin has to restore it.")
CLOCK = Fault(UNAVAILABLE, "the server's clock is behind what it has received; an admin has to set it.")
AWAY = Fault(UNAVAILABLE, "the server's database does not answer; try again in a moment.")

OF_SYSTEM = {
    errno.ENOSPC: FULL,
    errno.EDQUOT: FULL,
    errno.EROFS: READ_ONLY,
    errno.EIO: FAILING,
    errno.EMFILE: SCARCE,
    errno.ENFILE: SCARCE,
    errno.ENOMEM: SCARCE,
}
# What SQLite says; the driver has no codes for them before Python 3.11.
OF_SQLITE = {
    "disk is full": FULL,
    "readonly database": READ_ONLY,
    "disk I/O error": FAILING,
    "is locked": LOCKED,
    "malformed": DAMAGED,
    "not a database": DAMAGED,
}


def fault_of(error: BaseException | None) -> Fault | None:
    """Return the trouble that an error comes from, itself or what caused it; None where it is no such."""
    if error is None:
        return None
    if isinstance(error, OSError) and error.errno in OF_SYSTEM:
        return OF_SYSTEM[error.errno]
    if isinstance(error, PoolTimeoutError):
        return SCARCE
    if isinstance(error, DBAPIError):
        if getattr(error.orig, "sqlstate", None) == POSTGRES_DISK_FULL:
            return FULL
        said = next((fault for text, fault in OF_SQLITE.items() if text in str(error.orig)), None)
        return said or (AWAY if isinstance(error, (OperationalError, InterfaceError)) else None)
    return fault_of(error.__cause__)


def first_line(error: BaseException) -> str:
    """Return what a line of the log says of an error."""
    return (str(getattr(error, "orig", error)).strip().splitlines() or [type(error).__name__])[0]
