"""Packed files without a row: removed where a push was cut off, never where a row names them or may yet."""

from __future__ import annotations

import hashlib
import os
import random
import signal
import subprocess
import sys
import threading
import time

import pytest
from benchmarks.serving.process import ServerProcess
from pages_sample import MACHINES, made_run

from trainmark.server.access import tokens
from trainmark.server.access.tokens import Role
from trainmark.server.database import migrate
from trainmark.server.database.engine import open_engine, reading, writing
from trainmark.server.database.overview_queries import audit_log
from trainmark.server.ingest.ingest import (
    FRESH_SECONDS,
    clear_incoming,
    pack_path,
    prune_unreferenced,
    publishing_mark,
    remove_unfinished,
)
from trainmark.server.ingest.store import Received, store

# Stores a packed file as a push does, and is killed at the very moment between its name and its row.
KILLED_WHILE_STORING = """
import os, pathlib, signal, sys
from trainmark.server.access import tokens
from trainmark.server.database.engine import open_engine, writing
from trainmark.server.ingest.ingest import Upload, clear_incoming
from trainmark.server.ingest.ingest import Ingest
from trainmark.server.settings import ServerSettings

class KilledUpload(Upload):
    def publish(self):
        super().publish()
        os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    data, database, file, token = sys.argv[1:]
    settings = ServerSettings(pathlib.Path(data), database or None)
    settings.data.mkdir(mode=0o700, exist_ok=True)
    clear_incoming(settings)
    engine = open_engine(settings)
    with writing(engine) as connection:
        identity = tokens.identity(connection, token)
    upload = KilledUpload(settings)
    upload.write(pathlib.Path(file).read_bytes())
    Ingest(settings, engine).take(upload, identity, "127.0.0.1")
"""


@pytest.fixture
def engine(empty_settings):
    engine = open_engine(empty_settings)
    migrate.upgrade(engine)
    clear_incoming(empty_settings)
    yield engine
    engine.dispose()


@pytest.fixture
def identity(engine):
    with writing(engine) as connection:
        return tokens.identity(connection, tokens.create(connection, "push", Role.PUSH))


def write_file(settings, content: str, age_seconds: float) -> str:
    """Write a file as a packed one is named, and return its digest."""
    digest = hashlib.sha256(content.encode()).hexdigest()
    path = pack_path(settings, digest)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    os.utime(path, (time.time() - age_seconds,) * 2)
    return digest


def store_run(connection, identity, digest: str, seed: int) -> None:
    run = made_run(MACHINES[1], seed, time.time() - 86400.0, random.Random(seed), f"run-{seed}")
    store(connection, run, Received(digest, 10, identity, "127.0.0.1"))


@pytest.fixture
def referenced(engine, empty_settings, identity) -> str:
    """A file of an hour ago that a run names."""
    digest = write_file(empty_settings, "referenced", 3600)
    with writing(engine) as connection:
        store_run(connection, identity, digest, 1)
    return digest


def present(settings) -> set[str]:
    return {path.stem for path in settings.packs.glob("??/*.trainmark")}


def test_prune_removes_an_old_file_without_a_row_and_leaves_referenced_and_fresh_ones(
    engine, empty_settings, referenced
):
    old = write_file(empty_settings, "never committed", FRESH_SECONDS + 60)
    fresh = write_file(empty_settings, "just written", FRESH_SECONDS - 60)
    assert prune_unreferenced(engine, empty_settings, dry_run=True).digests == (old,)
    assert present(empty_settings) == {referenced, fresh, old}
    assert prune_unreferenced(engine, empty_settings).digests == (old,)
    assert present(empty_settings) == {referenced, fresh}
    with reading(engine) as connection:
        assert [row.subject for row in audit_log(connection) if row.action == "prune"] == [old]


def test_prune_waits_for_a_push_in_flight_and_leaves_its_file(engine, empty_settings, identity, referenced):
    """The file of the push is as old as any: only the lock protects it."""
    pruned = threading.Thread(target=prune_unreferenced, args=(engine, empty_settings))
    with writing(engine) as connection:
        digest = write_file(empty_settings, "in flight", 3600)
        store_run(connection, identity, digest, 2)
        pruned.start()
        pruned.join(0.5)
        assert pruned.is_alive()
    pruned.join(30)
    assert present(empty_settings) == {referenced, digest}


def test_prune_against_another_servers_database_removes_nothing(engine, empty_settings, trainmark):
    digest = write_file(empty_settings, "of another database", 3600)
    place = ["--data", str(empty_settings.data)]
    place += ["--database", empty_settings.database] if empty_settings.database else []
    answer = trainmark("server", "prune", *place)
    assert answer.code == 2 and "none of the 1 packed files" in answer.err
    assert present(empty_settings) == {digest}


def test_a_start_looks_at_marked_files_only_and_leaves_those_with_a_row(engine, empty_settings, referenced):
    cut_off = write_file(empty_settings, "cut off", 0)
    unmarked = write_file(empty_settings, "of a database that was set back", 3600)
    for digest in (referenced, cut_off, "not a digest"):
        publishing_mark(empty_settings, digest).touch()
    assert remove_unfinished(engine, empty_settings).digests == (cut_off,)
    assert present(empty_settings) == {referenced, unmarked}


def test_a_file_whose_push_was_killed_before_its_commit_is_gone_after_the_next_start(
    empty_settings, make_pack, tmp_path
):
    process = ServerProcess(empty_settings.data, empty_settings.database)
    token, file = process.token("push", Role.PUSH), make_pack(name="killed", rates=(80.0,))
    program = tmp_path / "killed.py"
    program.write_text(KILLED_WHILE_STORING)
    words = [str(empty_settings.data), empty_settings.database or "", str(file), token]
    done = subprocess.run([sys.executable, str(program), *words], capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert present(empty_settings) == {hashlib.sha256(file.read_bytes()).hexdigest()}
    process.start()
    try:
        assert present(empty_settings) == set()
        assert process.push(file, token).status == 201
        assert len(present(empty_settings)) == 1 and not list(empty_settings.incoming.iterdir())
    finally:
        process.stop()


def test_a_refused_push_leaves_no_file(server, make_pack):
    before = present(server.settings)
    token = server.token("scoped", Role.PUSH, suites="weekly*")
    assert server.push(make_pack(name="scoped", suite="nightly"), token).status == 403
    assert present(server.settings) == before
