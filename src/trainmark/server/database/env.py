"""What Alembic runs: all migrations of one command in one transaction."""

from __future__ import annotations

from alembic import context

from trainmark.server.database.engine import writing
from trainmark.server.database.models import Base

with writing(context.config.attributes["engine"]) as connection:
    context.configure(
        connection=connection, target_metadata=Base.metadata, render_as_batch=True, transactional_ddl=True
    )
    context.run_migrations()
