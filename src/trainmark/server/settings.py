"""The settings of a server, and the lock of its folder: one server at a time."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from trainmark.base.errors import UserError
from trainmark.base.files import home

MEBIBYTE = 1 << 20
KEPT_FREE_BYTES, KEPT_FREE_PART = 64 * MEBIBYTE, 20
SETTINGS = "TRAINMARK_SERVER_SETTINGS"
SCHEMES = ("sqlite", "postgresql")


@dataclass(frozen=True)
class ServerSettings:
    """`data` holds the packed files, and the database where `database` is None.

    `public` lets anybody read; without it every page and every question needs a token. `secure` says that
    browsers reach the server by https, and marks its cookies so. `pushes_per_minute`, `requests_per_minute`
    and `logins_per_minute` count by token, or by address where there is none. `proxies` are the addresses
    whose X-Forwarded-For is believed. With `allowed_signers` only runs that one of them signed are taken.
    `webhook` is the address to which changes of level are posted.
    `session_key` signs the sessions that a full disk cannot hold.
    """

    data: Path
    database: str | None = None
    public: bool = False
    secure: bool = False
    largest_pack_bytes: int = 256 * MEBIBYTE
    check_memory_bytes: int = 4096 * MEBIBYTE
    check_seconds: float = 120.0
    checks_at_once: int = 2
    pushes_per_minute: int = 120
    requests_per_minute: int = 3000
    logins_per_minute: int = 10
    session_seconds: float = 7 * 86400.0
    allowed_signers: Path | None = None
    title: str = "Trainmark"
    proxies: tuple[str, ...] = ()
    webhook: str | None = field(default=None, repr=False)
    session_key: str = field(default_factory=lambda: secrets.token_hex(32), repr=False, compare=False)

    @property
    def url(self) -> str:
        """Return the database's URL with the driver that is installed."""
        if self.database is None:
            return f"sqlite:///{self.data / 'trainmark.sqlite'}"
        scheme, separator, rest = self.database.partition("://")
        dialect = {"postgres": "postgresql"}.get(scheme.partition("+")[0], scheme.partition("+")[0])
        if not separator or dialect not in SCHEMES:
            raise UserError("--database takes sqlite:///FILE or postgresql://USER@HOST/NAME.")
        return f"postgresql+psycopg://{rest}" if dialect == "postgresql" else self.database

    @property
    def packs(self) -> Path:
        return self.data / "packs"

    @property
    def incoming(self) -> Path:
        """Where uploads are written before they have been checked; emptied at every start."""
        return self.data / "incoming"

    def room_bytes(self) -> int:
        """Return how much a push may take of the disk: what is kept is for rows, sessions and the log."""
        usage = shutil.disk_usage(self.incoming)
        return usage.free - min(KEPT_FREE_BYTES, usage.total // KEPT_FREE_PART)


def default_data() -> Path:
    return home() / "server"


def to_environment(settings: ServerSettings) -> None:
    """Hand the settings to worker processes, which build the application themselves."""
    os.environ[SETTINGS] = json.dumps(asdict(settings), default=str)


def from_environment() -> ServerSettings:
    values = json.loads(os.environ[SETTINGS])
    signers = values.pop("allowed_signers")
    return ServerSettings(
        **{
            **values,
            "data": Path(values["data"]),
            "allowed_signers": Path(signers) if signers else None,
            "proxies": tuple(values["proxies"]),
        }
    )


@contextlib.contextmanager
def locked(settings: ServerSettings) -> Iterator[None]:
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
