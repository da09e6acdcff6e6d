"""Migrations up and down, over both databases."""

from __future__ import annotations

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import inspect

from trainmark.errors import UserError
from trainmark.server.database import migrate
from trainmark.server.database.engine import open_engine
from trainmark.server.database.models import Base


@pytest.fixture
def engine(empty_settings):
    engine = open_engine(empty_settings)
    yield engine
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


def test_a_database_of_another_version_is_refused_with_what_to_do(engine):
    with pytest.raises(UserError, match="run `trainmark server migrate`"):
        migrate.require_current(engine)


def test_a_revision_that_is_not_known_is_refused(engine):
    with pytest.raises(UserError, match="there is no revision '9999'; known are 0001"):
        migrate.upgrade(engine, "9999")
