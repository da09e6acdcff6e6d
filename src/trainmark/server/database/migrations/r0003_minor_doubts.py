"""`results.minor_doubts`: the doubts that few trials have, and so weigh less; empty for what is stored."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from trainmark.server.database.migrate import drop_column

revision, down_revision = "0003", "0002"
branch_labels = depends_on = None


def upgrade() -> None:
    op.add_column("results", sa.Column("minor_doubts", sa.JSON(), server_default="[]", nullable=False))


def downgrade() -> None:
    drop_column("results", "minor_doubts")
