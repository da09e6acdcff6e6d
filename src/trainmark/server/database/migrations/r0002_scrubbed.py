"""`runs.scrubbed`: what was masked before packing, filled from the packed files that are stored."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from alembic import context, op

from trainmark.base.errors import UserError
from trainmark.server.database.migrate import drop_column
from trainmark.server.database.scrubbed import scrubbed_of
from trainmark.store.unpack import read_manifest

revision, down_revision = "0002", "0001"
branch_labels = depends_on = None
RUNS = sa.table(
    "runs", sa.column("id"), sa.column("pack_id"), sa.column("scrubbed", sa.JSON(none_as_null=True))
)
PACKS = sa.table("packs", sa.column("id"), sa.column("sha256"))


def upgrade() -> None:
    op.add_column("runs", sa.Column("scrubbed", sa.JSON(none_as_null=True), nullable=True))
    connection, packs = op.get_bind(), context.config.attributes.get("packs")
    query = sa.select(RUNS.c.id, PACKS.c.sha256).join(PACKS, PACKS.c.id == RUNS.c.pack_id)
    unknown = 0
    for run_id, sha256 in connection.execute(query.order_by(RUNS.c.id)).all():
        if (scrubbed := _scrubbed(packs, sha256)) is None:
            unknown += 1
            continue
        connection.execute(sa.update(RUNS).where(RUNS.c.id == run_id).values(scrubbed=scrubbed))
    if unknown:
        logging.getLogger("trainmark.server").warning(
            "%d packed files cannot be read; what was scrubbed from them stays unknown: is --data right?",
            unknown,
        )


def _scrubbed(packs: Path | None, sha256: str) -> dict[str, Any] | None:
    """None, which is unknown, where the packed file is not there or damaged."""
    if packs is None:
        return None
    try:
        return scrubbed_of(read_manifest(packs / sha256[:2] / f"{sha256}.trainmark"))
    except UserError:
        return None


def downgrade() -> None:
    drop_column("runs", "scrubbed")
