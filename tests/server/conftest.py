"""A server over SQLite, one over PostgreSQL, and packed runs to push; each is started once."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

# `benchmarks` is run from the checkout and never installed.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.serving.packs import MadeRun, packed
from benchmarks.serving.postgres import NoPostgresError, cluster
from benchmarks.serving.process import ServerProcess
from trainmark.server.access.roles import Role


@pytest.fixture(scope="session")
def postgres_url():
    try:
        with cluster() as url:
            yield url
    except NoPostgresError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session", params=["sqlite", "postgresql"])
def server(request, tmp_path_factory):
    """A running server; `server.tokens` has one of each role."""
    url = request.getfixturevalue("postgres_url") if request.param == "postgresql" else None
    process = ServerProcess(tmp_path_factory.mktemp("server"), url)
    process.tokens = {role: process.token(role.value, role) for role in Role}
    process.start()
    yield process
    process.stop()


@pytest.fixture(scope="session")
def sqlite_server(tmp_path_factory):
    process = ServerProcess(tmp_path_factory.mktemp("sqlite"))
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
