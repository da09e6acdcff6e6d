"""A PostgreSQL of its own in a folder: Debian's programs, a Unix socket, no network."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import create_engine, text

PLACES = (*sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True), Path("/usr/bin"))
# As durable as it comes, but small.
OPTIONS = "-c listen_addresses= -c shared_buffers=64MB -c max_connections=120 -c log_min_messages=fatal"


class NoPostgresError(Exception):
    """Why PostgreSQL cannot be started here."""


def programs() -> Path:
    for place in PLACES:
        if (place / "initdb").exists() and (place / "pg_ctl").exists():
            return place
    raise NoPostgresError("PostgreSQL is not installed (Debian: postgresql).")


def _as_user() -> list[str]:
    """`initdb` refuses root: then as nobody."""
    if os.getuid() != 0:
        return []
    if not shutil.which("setpriv"):
        raise NoPostgresError("setpriv is missing, and PostgreSQL does not run as root.")
    return ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]


@contextlib.contextmanager
def cluster() -> Iterator[str]:
    """Start a server, yield the URL of an empty database `trainmark`; NoPostgresError without one."""
    place, user = programs(), _as_user()
    # The path of a Unix socket has at most 107 characters.
    folder = Path(tempfile.mkdtemp(prefix="tm-pg-", dir="/tmp"))
    try:
        if user:
            nobody = pwd.getpwnam("nobody")
            os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        data = folder / "data"
        _run(
            user, place / "initdb", "-D", data, "-U", "trainmark", "-A", "trust", "-E", "UTF8", "--no-locale"
        )
        start(folder)
        try:
            url = f"postgresql+psycopg://trainmark@/postgres?host={folder}"
            engine = create_engine(url, isolation_level="AUTOCOMMIT")
            with engine.connect() as connection:
                connection.execute(text("CREATE DATABASE trainmark"))
            engine.dispose()
            yield f"postgresql://trainmark@/trainmark?host={folder}"
        finally:
            stop(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def start(folder: Path) -> None:
    """Start the server of a cluster's folder, again where it was stopped."""
    options = ("-l", folder / "log", "-o", f"{OPTIONS} -k {folder}", "-w", "-t", "60")
    _run(_as_user(), programs() / "pg_ctl", "-D", folder / "data", *options, "start")


def stop(folder: Path) -> None:
    """Stop it as a crash would."""
    _run(_as_user(), programs() / "pg_ctl", "-D", folder / "data", "-m", "immediate", "-w", "stop")


def _run(user: list[str], *words: str | Path) -> None:
    done = subprocess.run([*user, *map(str, words)], capture_output=True, text=True, cwd="/", check=False)
    if done.returncode != 0:
        raise NoPostgresError(f"{words[0]}: {done.stderr.strip() or done.stdout.strip()}")
