"""A server over SQLite, one over PostgreSQL, and packed runs to push; each is started once."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

# `benchmarks` is run from the checkout and never installed.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.serving.packs import MadeRun, packed
from benchmarks.serving.postgres import NoPostgresError, cluster
from benchmarks.serving.process import ServerProcess

from trainmark.server.access.tokens import Role
from trainmark.server.settings import ServerSettings


@pytest.fixture(scope="session")
def postgres_cluster():
    try:
        with cluster() as url:
            yield url
    except NoPostgresError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def empty_database(postgres_cluster):
    """Makes a new database in the cluster and returns its URL."""
    names = (f"db{number}" for number in itertools.count())
    engine = create_engine(ServerSettings(Path(), postgres_cluster).url, isolation_level="AUTOCOMMIT")

    def make() -> str:
        name = next(names)
        with engine.connect() as connection:
            connection.execute(text(f"CREATE DATABASE {name}"))
        return postgres_cluster.replace("/trainmark?", f"/{name}?")

    yield make
    engine.dispose()


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_settings(request, tmp_path):
    """Settings of a server that has no database yet."""
    url = request.getfixturevalue("empty_database")() if request.param == "postgresql" else None
    return ServerSettings(tmp_path / "data", url)


@pytest.fixture(scope="session", params=["sqlite", "postgresql"])
def server(request, tmp_path_factory):
    """A running server; `server.tokens` has one of each role."""
    url = request.getfixturevalue("empty_database")() if request.param == "postgresql" else None
    process = ServerProcess(tmp_path_factory.mktemp("server"), url, "--pushes", "10000")
    process.tokens = {role: process.token(role.value, role) for role in Role}
    process.start()
    yield process
    process.stop()


@pytest.fixture(scope="session")
def sqlite_server(tmp_path_factory):
    process = ServerProcess(tmp_path_factory.mktemp("sqlite"), None, "--pushes", "10000")
    process.tokens = {role: process.token(role.value, role) for role in Role}
    process.start()
    yield process
    process.stop()


@pytest.fixture(scope="session")
def make_pack(tmp_path_factory):
    """Makes a packed run; equal ones once."""
    folder = tmp_path_factory.mktemp("packs")
    files: dict[MadeRun, Path] = {}

    def make(**fields) -> Path:
        made = MadeRun(**fields)
        if made not in files:
            files[made] = packed(folder, made)
        return files[made]

    return make
