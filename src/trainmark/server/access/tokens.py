"""Tokens: what one may do, how they are made, looked up, listed and revoked; and the audit log of all that.

Entries of the log are added, never changed.
"""

from __future__ import annotations

import functools
import hashlib
import hmac
import re
import secrets
import time
from dataclasses import dataclass
from enum import Enum

from sqlalchemy import ColumnElement, Connection, Select, bindparam, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from trainmark.base.errors import UserError
from trainmark.server.database.models import SHORT, AuditTable, SessionTable, TokenTable
from trainmark.server.database.rows import RowKind
from trainmark.store.verify import AHEAD_SECONDS


class Role(str, Enum):
    """`push` may send runs only, `read` may see everything, `admin` both, and the audit log."""

    READ = "read"
    PUSH = "push"
    ADMIN = "admin"

    def may(self, needed: Role) -> bool:
        return self in (needed, Role.ADMIN)


PREFIX = "tm_"
UNSTORED = "unstored."
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,99}")
# A token is noted as used at most this often: reading pages must not write.
USED_SECONDS = 3600.0


@dataclass(frozen=True)
class Identity:
    """Whoever sent a request; `session` is the hash of the browser's session, None for a bearer token."""

    token_id: int
    name: str
    role: Role
    suites: str | None = None
    session: str | None = None


@dataclass(frozen=True)
class TokenRow:
    name: str
    role: str
    suites: str | None
    created: float
    expires: float | None
    revoked: float | None
    used: float | None


TOKENS = RowKind(TokenRow, TokenTable)


def digest(secret: str) -> str:
    """Hash a token or a session; 256 random bits need no salt and no slow hash."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def create(
    connection: Connection, name: str, role: Role, expires: float | None = None, suites: str | None = None
) -> str:
    """Make a token; what is returned is the only copy."""
    if not NAME.fullmatch(name):
        raise UserError(f"a token's name is letters, digits and ._@+-, not {name!r:.60}.")
    secret = PREFIX + secrets.token_urlsafe(32)
    try:
        connection.execute(
            insert(TokenTable).values(
                name=name,
                hash=digest(secret),
                role=role.value,
                suites=suites,
                created=time.time(),
                expires=expires,
            )
        )
    except IntegrityError as error:
        raise UserError(f"there is a token '{name}' already; choose another name.") from error
    record(connection, "token-created", name, detail=f"role {role.value}, suites {suites or 'any'}")
    return secret


def revoke(connection: Connection, name: str) -> None:
    """Revoke a token and end the sessions that were opened with it."""
    token_id = connection.execute(select(TokenTable.id).where(TokenTable.name == name)).scalar_one_or_none()
    if token_id is None:
        raise UserError(f"there is no token '{name}'; `trainmark server token list` shows them.")
    connection.execute(
        update(TokenTable)
        .where(TokenTable.id == token_id, TokenTable.revoked.is_(None))
        .values(revoked=time.time())
    )
    connection.execute(delete(SessionTable).where(SessionTable.token_id == token_id))
    record(connection, "token-revoked", name)


def tokens(connection: Connection) -> list[TokenRow]:
    return list(TOKENS.rows(connection.execute(TOKENS.select.order_by(TokenTable.id))))


@functools.cache
def _identity_select() -> Select[int, str, str, str | None]:
    columns = (TokenTable.id, TokenTable.name, TokenTable.role, TokenTable.suites)
    return select(*columns).where(TokenTable.hash == bindparam("hash"), *_valid())


@functools.cache
def _session_select() -> Select[int, str, str, str | None, str]:
    return (
        select(TokenTable.id, TokenTable.name, TokenTable.role, TokenTable.suites, SessionTable.hash)
        .join(SessionTable, SessionTable.token_id == TokenTable.id)
        .where(
            SessionTable.hash == bindparam("hash"),
            SessionTable.expires > bindparam("now"),
            # One that was opened while the clock was ahead would not end for as long as it was ahead.
            SessionTable.created - AHEAD_SECONDS < bindparam("now"),
            *_valid(),
        )
    )


def _valid() -> tuple[ColumnElement[bool], ...]:
    return TokenTable.revoked.is_(None), (TokenTable.expires.is_(None)) | (
        TokenTable.expires > bindparam("now")
    )


def identity(connection: Connection, secret: str) -> Identity | None:
    """Return whose token it is; None where it is unknown, revoked or expired."""
    if not secret.startswith(PREFIX):
        return None
    given = {"hash": digest(secret), "now": time.time()}
    row = connection.execute(_identity_select(), given).one_or_none()
    return Identity(row.id, row.name, Role(row.role), row.suites) if row else None


def session_identity(connection: Connection, secret: str) -> Identity | None:
    """Return who opened the session that a browser's cookie names."""
    given = {"hash": digest(secret), "now": time.time()}
    row = connection.execute(_session_select(), given).one_or_none()
    return Identity(row.id, row.name, Role(row.role), row.suites, row.hash) if row else None


def unstored_session(key: str, identity: Identity, seconds: float) -> str:
    """Return a session that no row has, for a database that cannot be written to: signed with `key`.

    It ends with the server, with its token, and after `seconds`; signing out only takes the cookie away.
    """
    claim = f"{UNSTORED}{identity.token_id}.{int(time.time() + seconds)}"
    return f"{claim}.{_signed(key, claim)}"


def unstored_identity(connection: Connection, key: str, secret: str) -> Identity | None:
    claim, _, signature = secret.rpartition(".")
    if not hmac.compare_digest(signature.encode(), _signed(key, claim).encode()):
        return None
    _, number, expires = claim.split(".")
    if not 0 <= int(expires) - time.time() < AHEAD_SECONDS:
        return None
    columns = (TokenTable.id, TokenTable.name, TokenTable.role, TokenTable.suites)
    chosen = select(*columns).where(TokenTable.id == int(number), *_valid())
    row = connection.execute(chosen, {"now": time.time()}).one_or_none()
    return Identity(row.id, row.name, Role(row.role), row.suites, digest(secret)) if row else None


def _signed(key: str, claim: str) -> str:
    return hmac.new(key.encode(), claim.encode(), hashlib.sha256).hexdigest()


def mark_used(connection: Connection, token_id: int) -> None:
    now = time.time()
    connection.execute(
        update(TokenTable)
        .where(
            TokenTable.id == token_id,
            (TokenTable.used.is_(None))
            | (TokenTable.used < now - USED_SECONDS)
            | (TokenTable.used > now + USED_SECONDS),
        )
        .values(used=now)
    )


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
