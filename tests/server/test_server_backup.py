"""Backup and restore: from either database to either, while the server serves."""

from __future__ import annotations

import shutil
import tarfile

import pytest
from sqlalchemy import func, select

from trainmark.base.errors import UserError
from trainmark.server.access.tokens import Role
from trainmark.server.backup import backup, restore
from trainmark.server.database.engine import opened, reading
from trainmark.server.database.models import Base, RunTable
from trainmark.server.settings import ServerSettings


def counts(settings: ServerSettings) -> dict[str, int]:
    with opened(settings) as engine, reading(engine) as connection:
        tables = Base.metadata.sorted_tables
        return {
            table.name: connection.execute(select(func.count()).select_from(table)).scalar_one()
            for table in tables
        }


@pytest.fixture(scope="module")
def saved(server, make_pack, tmp_path_factory):
    """A backup of a server that is serving, and what it had."""
    answer = server.push(make_pack(name="saved", host="saved"), server.tokens[Role.PUSH])
    assert answer.status in (200, 201), answer.body
    file = tmp_path_factory.mktemp("backup") / "server.tar"
    backup(server.settings, file)
    return file, counts(server.settings), answer.json


def test_a_restored_server_has_every_row_and_file_and_takes_new_runs(saved, empty_settings, make_pack):
    file, before, pushed = saved
    restore(empty_settings, file)
    assert counts(empty_settings) == before
    from benchmarks.serving.process import ServerProcess

    process = ServerProcess(empty_settings.data, empty_settings.database)
    token = process.token("after-restore", Role.ADMIN)
    process.start()
    try:
        assert process.request(f"/api/v1/runs/{pushed['run']}", token).status == 200
        assert process.request(f"/api/v1/packs/{pushed['sha256']}", token).status == 200
        assert process.push(make_pack(name="after", host="saved", day=5), token).status == 201
    finally:
        process.stop()


def test_a_backup_can_be_read_by_its_owner_only(saved):
    assert saved[0].stat().st_mode & 0o077 == 0


def test_a_backup_never_overwrites_a_file(server, saved):
    with pytest.raises(UserError, match="exists; name a new file"):
        backup(server.settings, saved[0])


def test_a_restore_into_a_database_that_is_in_use_is_refused(server, saved):
    before = counts(server.settings)
    with pytest.raises(UserError, match="is not empty"):
        restore(server.settings, saved[0])
    assert counts(server.settings) == before


def test_a_damaged_backup_is_refused_and_leaves_an_empty_database(saved, empty_settings, tmp_path):
    damaged = tmp_path / "damaged.tar"
    shutil.copy(saved[0], damaged)
    with tarfile.open(damaged) as archive:
        pack = next(member for member in archive if member.name.startswith("packs/"))
    with damaged.open("r+b") as file:
        file.seek(pack.offset_data + 100)
        file.write(b"\0\0\0\0")
    with pytest.raises(UserError, match="has another digest"):
        restore(empty_settings, damaged)
    from trainmark.server.database import migrate

    with opened(empty_settings) as engine:
        assert migrate.current(engine) is None


def test_what_is_no_backup_is_refused(tmp_path):
    (tmp_path / "x").write_text("no tar")
    with pytest.raises(UserError, match="is no backup"):
        restore(ServerSettings(tmp_path / "data"), tmp_path / "x")


def test_the_rows_of_a_backup_are_those_of_the_server(saved):
    with tarfile.open(saved[0]) as archive:
        lines = archive.extractfile(f"tables/{RunTable.__tablename__}.jsonl").read().splitlines()
    assert len(lines) == saved[1]["runs"]
