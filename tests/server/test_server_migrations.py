"""Migrations up and down, over both databases, with the rows and files of a server in them."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from benchmarks.serving.packs import MadeRun, packed
from sqlalchemy import Engine, MetaData, inspect, select, text

from trainmark.base.errors import UserError
from trainmark.server.access import tokens
from trainmark.server.access.tokens import Role
from trainmark.server.backup import backup, restore
from trainmark.server.database import migrate, run_queries
from trainmark.server.database.engine import open_engine, opened, reading, writing
from trainmark.server.database.models import Base
from trainmark.server.ingest.ingest import Ingest, Upload, pack_path
from trainmark.server.settings import ServerSettings

HOME_PATH = "reads /home/ada/corpus"


@pytest.fixture
def engine(empty_settings):
    engine = open_engine(empty_settings)
    yield engine
    engine.dispose()


@dataclass(frozen=True)
class Filled:
    """A server with two runs, of which only one has something scrubbed."""

    settings: ServerSettings
    engine: Engine
    plain: str
    scrubbed: str

    def rows(self) -> dict[str, list[tuple]]:
        """Every row of every table, by the columns of 0001."""
        with reading(self.engine) as connection:
            tables = MetaData()
            tables.reflect(connection, only=lambda name, _: name != "alembic_version")
            return {
                table.name: [
                    tuple(row)
                    for row in connection.execute(
                        select(
                            *(
                                column
                                for column in table.columns
                                if column.name not in ("scrubbed", "minor_doubts")
                            )
                        )
                        .select_from(table)
                        .order_by(*table.primary_key)
                    )
                ]
                for table in tables.sorted_tables
            }

    def notes(self, run: str):
        with reading(self.engine) as connection:
            return run_queries.run(connection, run).scrubbed


@pytest.fixture(scope="module")
def stored_once(tmp_path_factory):
    """A SQLite server with the two runs, stored by the way that a push takes, and its backup."""
    folder = tmp_path_factory.mktemp("filled")
    settings = ServerSettings(folder / "data")
    runs = [MadeRun(name="plain"), MadeRun(name="scrubbed", text=HOME_PATH)]
    with opened(settings) as engine:
        migrate.upgrade(engine)
        with writing(engine) as connection:
            identity = tokens.identity(connection, tokens.create(connection, "push", Role.PUSH))
        for made in runs:
            upload = Upload(settings)
            upload.write(packed(folder, made).read_bytes())
            assert Ingest(settings, engine).take(upload, identity, "127.0.0.1").new
            upload.close()
    backup(settings, folder / "backup.tar")
    return folder / "backup.tar", [made.uuid for made in runs]


@pytest.fixture
def filled(stored_once, empty_settings):
    file, (plain, scrubbed) = stored_once
    restore(empty_settings, file)
    engine = open_engine(empty_settings)
    yield Filled(empty_settings, engine, plain, scrubbed)
    engine.dispose()


def test_the_migrations_make_exactly_the_tables_of_the_models(engine):
    migrate.upgrade(engine)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, Base.metadata) == []


def test_every_migration_has_a_way_back_that_can_be_gone_again(engine):
    for revision in migrate.revisions(engine):
        migrate.upgrade(engine, revision)
        before = migrate.current(engine)
        migrate.downgrade(engine, _below(engine, revision))
        migrate.upgrade(engine, revision)
        assert migrate.current(engine) == before == revision
    migrate.downgrade(engine, migrate.EMPTY)
    assert inspect(engine).get_table_names() == ["alembic_version"]


def _below(engine, revision: str) -> str:
    known = migrate.revisions(engine)
    place = known.index(revision)
    return known[place - 1] if place else migrate.EMPTY


def test_down_to_0001_and_up_again_changes_no_row_and_reads_from_the_files_what_was_scrubbed(filled):
    before, notes = filled.rows(), filled.notes(filled.scrubbed)
    assert {"runs": 2, "results": 2, "trials": 6, "packs": 2}.items() <= {
        name: len(rows) for name, rows in before.items()
    }.items()
    assert migrate.move(filled.engine, "0001", filled.settings) == ("0003", "0001")
    assert filled.rows() == before
    assert "scrubbed" not in {column["name"] for column in inspect(filled.engine).get_columns("runs")}
    assert migrate.move(filled.engine, "head", filled.settings) == ("0001", "0003")
    assert filled.rows() == before
    assert notes.count > 0 and filled.notes(filled.scrubbed) == notes
    assert filled.notes(filled.plain).count == 0


def test_what_was_scrubbed_is_null_where_the_packed_file_is_gone_or_damaged(filled, caplog):
    migrate.move(filled.engine, "0001", filled.settings)
    with reading(filled.engine) as connection:
        digests = connection.execute(text("SELECT sha256 FROM packs ORDER BY id")).scalars().all()
    pack_path(filled.settings, digests[0]).unlink()
    pack_path(filled.settings, digests[1]).write_bytes(b"damaged")
    migrate.move(filled.engine, "head", filled.settings)
    with reading(filled.engine) as connection:
        unknown = connection.execute(text("SELECT count(*) FROM runs WHERE scrubbed IS NULL")).scalar_one()
    assert unknown == 2 and filled.notes(filled.plain) is None
    assert "2 packed files cannot be read" in caplog.text


def test_the_backup_of_an_older_database_is_restored_to_this_version(filled, tmp_path):
    before = filled.rows()
    migrate.move(filled.engine, "0001", filled.settings)
    backup(filled.settings, tmp_path / "old.tar")
    restored = ServerSettings(tmp_path / "restored")
    restore(restored, tmp_path / "old.tar")
    with opened(restored) as engine:
        copy = Filled(restored, engine, filled.plain, filled.scrubbed)
        assert copy.rows() == before
        assert copy.notes(copy.scrubbed).count > 0


def test_a_migration_that_fails_changes_nothing(filled, monkeypatch):
    from trainmark.server.database import scrubbed

    migrate.move(filled.engine, "0001", filled.settings)
    before = filled.rows()
    monkeypatch.setattr(scrubbed, "visible", lambda _text: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        migrate.move(filled.engine, "head", filled.settings)
    assert migrate.current(filled.engine) == "0001" and filled.rows() == before


def test_a_sqlite_that_drops_no_columns_is_named_and_nothing_changes(filled, monkeypatch):
    if filled.engine.dialect.name != "sqlite":
        pytest.skip("of SQLite")
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 34, 1))
    with pytest.raises(UserError, match=r"needs SQLite 3\.35 or newer"):
        migrate.move(filled.engine, "0001", filled.settings)
    assert migrate.current(filled.engine) == "0003" and filled.notes(filled.scrubbed).count > 0


def test_a_server_refuses_an_older_database_with_what_to_do_and_starts_once_it_is_migrated(
    filled, trainmark, tmp_path
):
    from benchmarks.serving.process import ServerProcess

    place = ["--data", str(filled.settings.data)]
    place += ["--database", filled.settings.database] if filled.settings.database else []
    assert trainmark("server", "migrate", "--to", "0001", *place).out == "revision 0003 → 0001\n"
    refused = trainmark("serve", "--port", "0", *place)
    assert refused.code == 2
    assert refused.err == (
        "trainmark: the database is at revision 0001, not 0003; run `trainmark server migrate`.\n"
    )
    assert trainmark("server", "backup", str(tmp_path / "before.tar"), *place).code == 0
    assert trainmark("server", "migrate", *place).out == "revision 0001 → 0003\n"
    process = ServerProcess(filled.settings.data, filled.settings.database)
    token = process.token("reader", Role.READ)
    process.start()
    try:
        page = process.request(f"/runs/{filled.scrubbed}", token)
        assert page.status == 200 and b"What was masked, and where" in page.body
        refused = trainmark("server", "migrate", "--to", "0001", *place)
        assert refused.code == 2 and "is being served by another trainmark" in refused.err
    finally:
        process.stop()


@pytest.mark.parametrize(
    "words",
    [("serve", "--port", "0"), ("server", "migrate"), ("server", "migrate", "--to", "0001"),
     ("server", "backup", "x.tar"), ("server", "token", "list"), ("server", "prune")],
)  # fmt: skip
def test_a_database_of_a_newer_version_is_refused_in_one_sentence_and_left_alone(words, trainmark, tmp_path):
    settings = ServerSettings(tmp_path / "data")
    with opened(settings) as engine:
        migrate.upgrade(engine)
        with writing(engine) as connection:
            connection.execute(text("UPDATE alembic_version SET version_num = '0099'"))
    answer = trainmark(*words, "--data", str(settings.data))
    assert answer.code == 2
    assert answer.err == (
        "trainmark: the database is of a newer version (revision 0099); use that version of trainmark.\n"
    )
    with opened(settings) as engine:
        assert migrate.current(engine) == "0099"


def test_a_database_without_tables_is_refused_with_what_to_do(engine):
    with pytest.raises(UserError, match="run `trainmark server migrate`"):
        migrate.require_current(engine)


def test_a_revision_that_is_not_known_is_refused(engine):
    with pytest.raises(UserError, match="there is no revision '9999'; known are 0001"):
        migrate.upgrade(engine, "9999")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("DELETE FROM alembic_version", "tables and no revision"),
        ("DROP TABLE alembic_version", "tables and no revision"),
        ("INSERT INTO alembic_version VALUES ('0001')", "several revisions"),
        ("ALTER TABLE runs DROP COLUMN scrubbed", "column scrubbed of table runs is missing"),
        ("DROP TABLE changes", "damaged: table changes is missing"),
    ],
)
def test_tables_that_are_not_as_their_migrations_left_them_are_named_before_anything_is_served(
    engine, change, sentence
):
    migrate.upgrade(engine)
    with writing(engine) as connection:
        connection.execute(text(change))
    with pytest.raises(UserError, match=sentence):
        migrate.require_current(engine)


def test_a_migration_that_the_tables_do_not_fit_says_so_in_one_sentence(engine, empty_settings):
    migrate.upgrade(engine)
    with writing(engine) as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '0001'"))
    with pytest.raises(UserError, match=r"failed and changed nothing.*scrubbed.*restore a backup"):
        migrate.move(engine, "head", empty_settings)
    assert migrate.current(engine) == "0001"


def test_what_is_no_database_is_refused_in_one_sentence(trainmark, tmp_path):
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    (data / "trainmark.sqlite").write_bytes(b"no database" * 500)
    answer = trainmark("server", "token", "list", "--data", str(data))
    assert (answer.code, answer.err.count("\n")) == (2, 1) and "cannot be opened" in answer.err
