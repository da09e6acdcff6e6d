"""The first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision, down_revision = "0001", None
branch_labels = depends_on = None
NAMING = {
    "ix": "ix_%(column_0_label)s",
    "uq": "uq_%(table_name)s_%(column_0_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s",
    "pk": "pk_%(table_name)s",
}
ID, NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite"), sa.Float(53)
DIGEST, SHORT, LONG = sa.String(64), sa.String(200), sa.String(2000)
# Those of this revision, whatever the models have become since.
TABLES = sa.MetaData(naming_convention=NAMING)
sa.Table(
    "audit",
    TABLES,
    sa.Column("id", ID, primary_key=True),
    sa.Column("time", NUMBER, nullable=False, index=True),
    sa.Column("token", SHORT, nullable=True),
    sa.Column("address", SHORT, nullable=True),
    sa.Column("action", sa.String(40), nullable=False),
    sa.Column("subject", SHORT, nullable=False),
    sa.Column("detail", sa.Text, nullable=False),
)
sa.Table(
    "facts",
    TABLES,
    sa.Column("id", ID, primary_key=True),
    sa.Column("digest", DIGEST, nullable=False, unique=True),
    sa.Column("facts", sa.JSON, nullable=False),
)
sa.Table(
    "machines",
    TABLES,
    sa.Column("id", ID, primary_key=True),
    sa.Column("digest", DIGEST, nullable=False, unique=True),
    sa.Column("name", SHORT, nullable=False),
    sa.Column("device", SHORT, nullable=False, index=True),
    sa.Column("facts", sa.JSON, nullable=False),
    sa.Column("first_seen", NUMBER, nullable=False),
    sa.Column("last_seen", NUMBER, nullable=False, index=True),
    sa.Column("runs", sa.Integer, nullable=False),
)
sa.Table(
    "tokens",
    TABLES,
    sa.Column("id", ID, primary_key=True),
    sa.Column("name", SHORT, nullable=False, unique=True),
    sa.Column("hash", DIGEST, nullable=False, unique=True),
    sa.Column("role", sa.String(16), nullable=False),
    sa.Column("suites", SHORT, nullable=True),
    sa.Column("created", NUMBER, nullable=False),
    sa.Column("expires", NUMBER, nullable=True),
    sa.Column("revoked", NUMBER, nullable=True),
    sa.Column("used", NUMBER, nullable=True),
)
sa.Table(
    "cases",
    TABLES,
    sa.Column("id", ID, primary_key=True),
    sa.Column("digest", DIGEST, nullable=False, unique=True),
    sa.Column("machine_id", ID, sa.ForeignKey("machines.id"), nullable=False, index=True),
    sa.Column("label", LONG, nullable=False),
    sa.Column("workload", SHORT, nullable=False),
    sa.Column("framework", SHORT, nullable=False),
    sa.Column("precision", SHORT, nullable=False),
    sa.Column("device", SHORT, nullable=False),
    sa.Column("devices", sa.Integer, nullable=False),
    sa.Column("unit", sa.String(40), nullable=False),
    sa.Column("key", sa.JSON, nullable=False),
    sa.Column("results", sa.Integer, nullable=False),
    sa.Column("first_time", NUMBER, nullable=False),
    sa.Column("last_time", NUMBER, nullable=False, index=True),
    sa.Column("last_throughput", NUMBER, nullable=False),
    sa.Column("last_low", NUMBER, nullable=True),
    sa.Column("last_high", NUMBER, nullable=True),
    sa.Column("last_n", sa.Integer, nullable=False),
    sa.Column("last_run_id", sa.Integer, nullable=False),
    sa.Column("last_version", SHORT, nullable=True),
    sa.Column("last_doubts", sa.JSON, nullable=False),
    sa.Column("last_mfu", NUMBER, nullable=True),
    sa.Column("conformance", sa.String(20), nullable=False),
    sa.Column("best_throughput", NUMBER, nullable=False),
    sa.Column("changes", sa.Integer, nullable=False),
    sa.Column("last_change_time", NUMBER, nullable=True, index=True),
    sa.Column("last_change_ratio", NUMBER, nullable=True),
    sa.Column("recent", sa.JSON, nullable=False),
    sa.Index("ix_cases_leaderboard", "workload", "device", "last_throughput"),
)
sa.Table(
    "packs",
    TABLES,
    sa.Column("id", ID, primary_key=True),
    sa.Column("sha256", DIGEST, nullable=False, unique=True),
    sa.Column("bytes", sa.BigInteger, nullable=False),
    sa.Column("received", NUMBER, nullable=False),
    sa.Column("token_id", ID, sa.ForeignKey("tokens.id", ondelete="SET NULL"), nullable=True, index=True),
    sa.Column("token", SHORT, nullable=False),
    sa.Column("signer", SHORT, nullable=True),
)
sa.Table(
    "sessions",
    TABLES,
    sa.Column("hash", DIGEST, primary_key=True),
    sa.Column("token_id", ID, sa.ForeignKey("tokens.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("created", NUMBER, nullable=False),
    sa.Column("expires", NUMBER, nullable=False, index=True),
)
sa.Table(
    "runs",
    TABLES,
    sa.Column("id", ID, primary_key=True),
    sa.Column("uuid", sa.String(36), nullable=False, unique=True),
    sa.Column("name", SHORT, nullable=False, index=True),
    sa.Column("suite", SHORT, nullable=False, index=True),
    sa.Column("about", sa.Text, nullable=False),
    sa.Column("created", NUMBER, nullable=False, index=True),
    sa.Column("pushed", NUMBER, nullable=False),
    sa.Column("version", sa.String(40), nullable=False),
    sa.Column("command", sa.Text, nullable=False),
    sa.Column("commit", SHORT, nullable=True, index=True),
    sa.Column("pack_id", ID, sa.ForeignKey("packs.id"), nullable=False, index=True),
    sa.Column("machine_id", ID, sa.ForeignKey("machines.id"), nullable=False, index=True),
    sa.Column("ok", sa.Integer, nullable=False),
    sa.Column("failed", sa.Integer, nullable=False),
    sa.Column("doubts", sa.JSON, nullable=False),
    sa.Column("words", LONG, nullable=False),
    sa.Column("environment", sa.JSON, nullable=False),
)
sa.Table(
    "results",
    TABLES,
    sa.Column("id", ID, primary_key=True),
    sa.Column("case_id", ID, sa.ForeignKey("cases.id"), nullable=False),
    sa.Column("run_id", ID, sa.ForeignKey("runs.id"), nullable=False, index=True),
    sa.Column("name", SHORT, nullable=False),
    sa.Column("time", NUMBER, nullable=False),
    sa.Column("throughput", NUMBER, nullable=False),
    sa.Column("low", NUMBER, nullable=True),
    sa.Column("high", NUMBER, nullable=True),
    sa.Column("n", sa.Integer, nullable=False),
    sa.Column("failed", sa.Integer, nullable=False),
    sa.Column("values", sa.JSON, nullable=False),
    sa.Column("facts_id", ID, sa.ForeignKey("facts.id"), nullable=False, index=True),
    sa.Column("own_facts", sa.JSON, nullable=False),
    sa.Column("doubts", sa.JSON, nullable=False),
    sa.Column("conformance", sa.String(20), nullable=False),
    sa.Column("step_seconds", NUMBER, nullable=True),
    sa.Column("memory_bytes", sa.BigInteger, nullable=True),
    sa.Column("mfu", NUMBER, nullable=True),
    sa.Column("samples_per_joule", NUMBER, nullable=True),
    sa.Column("efficiency", NUMBER, nullable=True),
    sa.Index("ix_results_case_time", "case_id", "time"),
)
sa.Table(
    "changes",
    TABLES,
    sa.Column("id", ID, primary_key=True),
    sa.Column("case_id", ID, sa.ForeignKey("cases.id"), nullable=False, index=True),
    sa.Column("result_id", ID, sa.ForeignKey("results.id"), nullable=False, index=True),
    sa.Column("time", NUMBER, nullable=False, index=True),
    sa.Column("ratio", NUMBER, nullable=False),
    sa.Column("low", NUMBER, nullable=False),
    sa.Column("high", NUMBER, nullable=False),
    sa.Column("probability", NUMBER, nullable=False),
    sa.Column("confirmed_by", sa.Integer, nullable=False),
    sa.Column("facts", sa.JSON, nullable=False),
)
sa.Table(
    "trials",
    TABLES,
    sa.Column("id", ID, primary_key=True),
    sa.Column("uuid", sa.String(36), nullable=False, unique=True),
    sa.Column("digest", DIGEST, nullable=False),
    sa.Column("run_id", ID, sa.ForeignKey("runs.id"), nullable=False, index=True),
    sa.Column("result_id", ID, sa.ForeignKey("results.id"), nullable=True, index=True),
    sa.Column("case", SHORT, nullable=False),
    sa.Column("repeat", sa.Integer, nullable=False),
    sa.Column("outcome", sa.String(20), nullable=False),
    sa.Column("detail", sa.Text, nullable=False),
    sa.Column("started", NUMBER, nullable=False),
    sa.Column("seconds", NUMBER, nullable=False),
    sa.Column("throughput", NUMBER, nullable=True),
    sa.Column("row", sa.JSON, nullable=False),
)


def upgrade() -> None:
    TABLES.create_all(op.get_bind())


def downgrade() -> None:
    TABLES.drop_all(op.get_bind())
