"""The first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision, down_revision = "0001", None
branch_labels = depends_on = None
ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "audit",
        sa.Column("id", ID, nullable=False),
        sa.Column("time", sa.Float(precision=53), nullable=False),
        sa.Column("token", sa.String(length=200), nullable=True),
        sa.Column("address", sa.String(length=200), nullable=True),
        sa.Column("action", sa.String(length=40), nullable=False),
        sa.Column("subject", sa.String(length=200), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit")),
    )
    op.create_index(op.f("ix_audit_time"), "audit", ["time"], unique=False)
    op.create_table(
        "facts",
        sa.Column("id", ID, nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("facts", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_facts")),
        sa.UniqueConstraint("digest", name=op.f("uq_facts_digest")),
    )
    op.create_table(
        "machines",
        sa.Column("id", ID, nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("device", sa.String(length=200), nullable=False),
        sa.Column("facts", sa.JSON(), nullable=False),
        sa.Column("first_seen", sa.Float(precision=53), nullable=False),
        sa.Column("last_seen", sa.Float(precision=53), nullable=False),
        sa.Column("runs", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_machines")),
        sa.UniqueConstraint("digest", name=op.f("uq_machines_digest")),
    )
    op.create_index(op.f("ix_machines_device"), "machines", ["device"], unique=False)
    op.create_index(op.f("ix_machines_last_seen"), "machines", ["last_seen"], unique=False)
    op.create_table(
        "tokens",
        sa.Column("id", ID, nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("suites", sa.String(length=200), nullable=True),
        sa.Column("created", sa.Float(precision=53), nullable=False),
        sa.Column("expires", sa.Float(precision=53), nullable=True),
        sa.Column("revoked", sa.Float(precision=53), nullable=True),
        sa.Column("used", sa.Float(precision=53), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tokens")),
        sa.UniqueConstraint("hash", name=op.f("uq_tokens_hash")),
        sa.UniqueConstraint("name", name=op.f("uq_tokens_name")),
    )
    op.create_table(
        "cases",
        sa.Column("id", ID, nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("machine_id", ID, nullable=False),
        sa.Column("label", sa.String(length=2000), nullable=False),
        sa.Column("workload", sa.String(length=200), nullable=False),
        sa.Column("framework", sa.String(length=200), nullable=False),
        sa.Column("precision", sa.String(length=200), nullable=False),
        sa.Column("device", sa.String(length=200), nullable=False),
        sa.Column("devices", sa.Integer(), nullable=False),
        sa.Column("unit", sa.String(length=40), nullable=False),
        sa.Column("key", sa.JSON(), nullable=False),
        sa.Column("results", sa.Integer(), nullable=False),
        sa.Column("first_time", sa.Float(precision=53), nullable=False),
        sa.Column("last_time", sa.Float(precision=53), nullable=False),
        sa.Column("last_throughput", sa.Float(precision=53), nullable=False),
        sa.Column("last_low", sa.Float(precision=53), nullable=True),
        sa.Column("last_high", sa.Float(precision=53), nullable=True),
        sa.Column("last_n", sa.Integer(), nullable=False),
        sa.Column("last_run_id", sa.Integer(), nullable=False),
        sa.Column("last_version", sa.String(length=200), nullable=True),
        sa.Column("last_doubts", sa.JSON(), nullable=False),
        sa.Column("last_mfu", sa.Float(precision=53), nullable=True),
        sa.Column("conformance", sa.String(length=20), nullable=False),
        sa.Column("best_throughput", sa.Float(precision=53), nullable=False),
        sa.Column("changes", sa.Integer(), nullable=False),
        sa.Column("last_change_time", sa.Float(precision=53), nullable=True),
        sa.Column("last_change_ratio", sa.Float(precision=53), nullable=True),
        sa.Column("recent", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["machine_id"], ["machines.id"], name=op.f("fk_cases_machine_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_cases")),
        sa.UniqueConstraint("digest", name=op.f("uq_cases_digest")),
    )
    op.create_index(op.f("ix_cases_last_change_time"), "cases", ["last_change_time"], unique=False)
    op.create_index(op.f("ix_cases_last_time"), "cases", ["last_time"], unique=False)
    op.create_index("ix_cases_leaderboard", "cases", ["workload", "device", "last_throughput"], unique=False)
    op.create_index(op.f("ix_cases_machine_id"), "cases", ["machine_id"], unique=False)
    op.create_table(
        "packs",
        sa.Column("id", ID, nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("received", sa.Float(precision=53), nullable=False),
        sa.Column("token_id", ID, nullable=True),
        sa.Column("token", sa.String(length=200), nullable=False),
        sa.Column("signer", sa.String(length=200), nullable=True),
        sa.ForeignKeyConstraint(
            ["token_id"], ["tokens.id"], name=op.f("fk_packs_token_id"), ondelete="SET NULL"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_packs")),
        sa.UniqueConstraint("sha256", name=op.f("uq_packs_sha256")),
    )
    op.create_index(op.f("ix_packs_token_id"), "packs", ["token_id"], unique=False)
    op.create_table(
        "sessions",
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.Column("token_id", ID, nullable=False),
        sa.Column("created", sa.Float(precision=53), nullable=False),
        sa.Column("expires", sa.Float(precision=53), nullable=False),
        sa.ForeignKeyConstraint(
            ["token_id"], ["tokens.id"], name=op.f("fk_sessions_token_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("hash", name=op.f("pk_sessions")),
    )
    op.create_index(op.f("ix_sessions_expires"), "sessions", ["expires"], unique=False)
    op.create_index(op.f("ix_sessions_token_id"), "sessions", ["token_id"], unique=False)
    op.create_table(
        "runs",
        sa.Column("id", ID, nullable=False),
        sa.Column("uuid", sa.String(length=36), nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("suite", sa.String(length=200), nullable=False),
        sa.Column("about", sa.Text(), nullable=False),
        sa.Column("created", sa.Float(precision=53), nullable=False),
        sa.Column("pushed", sa.Float(precision=53), nullable=False),
        sa.Column("version", sa.String(length=40), nullable=False),
        sa.Column("command", sa.Text(), nullable=False),
        sa.Column("commit", sa.String(length=200), nullable=True),
        sa.Column("pack_id", ID, nullable=False),
        sa.Column("machine_id", ID, nullable=False),
        sa.Column("ok", sa.Integer(), nullable=False),
        sa.Column("failed", sa.Integer(), nullable=False),
        sa.Column("doubts", sa.JSON(), nullable=False),
        sa.Column("words", sa.String(length=2000), nullable=False),
        sa.Column("environment", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["machine_id"], ["machines.id"], name=op.f("fk_runs_machine_id")),
        sa.ForeignKeyConstraint(["pack_id"], ["packs.id"], name=op.f("fk_runs_pack_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runs")),
        sa.UniqueConstraint("uuid", name=op.f("uq_runs_uuid")),
    )
    op.create_index(op.f("ix_runs_commit"), "runs", ["commit"], unique=False)
    op.create_index(op.f("ix_runs_created"), "runs", ["created"], unique=False)
    op.create_index(op.f("ix_runs_machine_id"), "runs", ["machine_id"], unique=False)
    op.create_index(op.f("ix_runs_name"), "runs", ["name"], unique=False)
    op.create_index(op.f("ix_runs_pack_id"), "runs", ["pack_id"], unique=False)
    op.create_index(op.f("ix_runs_suite"), "runs", ["suite"], unique=False)
    op.create_table(
        "results",
        sa.Column("id", ID, nullable=False),
        sa.Column("case_id", ID, nullable=False),
        sa.Column("run_id", ID, nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("time", sa.Float(precision=53), nullable=False),
        sa.Column("throughput", sa.Float(precision=53), nullable=False),
        sa.Column("low", sa.Float(precision=53), nullable=True),
        sa.Column("high", sa.Float(precision=53), nullable=True),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("failed", sa.Integer(), nullable=False),
        sa.Column("values", sa.JSON(), nullable=False),
        sa.Column("facts_id", ID, nullable=False),
        sa.Column("own_facts", sa.JSON(), nullable=False),
        sa.Column("doubts", sa.JSON(), nullable=False),
        sa.Column("conformance", sa.String(length=20), nullable=False),
        sa.Column("step_seconds", sa.Float(precision=53), nullable=True),
        sa.Column("memory_bytes", sa.BigInteger(), nullable=True),
        sa.Column("mfu", sa.Float(precision=53), nullable=True),
        sa.Column("samples_per_joule", sa.Float(precision=53), nullable=True),
        sa.Column("efficiency", sa.Float(precision=53), nullable=True),
        sa.ForeignKeyConstraint(["case_id"], ["cases.id"], name=op.f("fk_results_case_id")),
        sa.ForeignKeyConstraint(["facts_id"], ["facts.id"], name=op.f("fk_results_facts_id")),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_results_run_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_results")),
    )
    op.create_index("ix_results_case_time", "results", ["case_id", "time"], unique=False)
    op.create_index(op.f("ix_results_facts_id"), "results", ["facts_id"], unique=False)
    op.create_index(op.f("ix_results_run_id"), "results", ["run_id"], unique=False)
    op.create_table(
        "changes",
        sa.Column("id", ID, nullable=False),
        sa.Column("case_id", ID, nullable=False),
        sa.Column("result_id", ID, nullable=False),
        sa.Column("time", sa.Float(precision=53), nullable=False),
        sa.Column("ratio", sa.Float(precision=53), nullable=False),
        sa.Column("low", sa.Float(precision=53), nullable=False),
        sa.Column("high", sa.Float(precision=53), nullable=False),
        sa.Column("probability", sa.Float(precision=53), nullable=False),
        sa.Column("confirmed_by", sa.Integer(), nullable=False),
        sa.Column("facts", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["case_id"], ["cases.id"], name=op.f("fk_changes_case_id")),
        sa.ForeignKeyConstraint(["result_id"], ["results.id"], name=op.f("fk_changes_result_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_changes")),
    )
    op.create_index(op.f("ix_changes_case_id"), "changes", ["case_id"], unique=False)
    op.create_index(op.f("ix_changes_result_id"), "changes", ["result_id"], unique=False)
    op.create_index(op.f("ix_changes_time"), "changes", ["time"], unique=False)
    op.create_table(
        "trials",
        sa.Column("id", ID, nullable=False),
        sa.Column("uuid", sa.String(length=36), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("run_id", ID, nullable=False),
        sa.Column("result_id", ID, nullable=True),
        sa.Column("case", sa.String(length=200), nullable=False),
        sa.Column("repeat", sa.Integer(), nullable=False),
        sa.Column("outcome", sa.String(length=20), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("started", sa.Float(precision=53), nullable=False),
        sa.Column("seconds", sa.Float(precision=53), nullable=False),
        sa.Column("throughput", sa.Float(precision=53), nullable=True),
        sa.Column("row", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["result_id"], ["results.id"], name=op.f("fk_trials_result_id")),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_trials_run_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_trials")),
        sa.UniqueConstraint("uuid", name=op.f("uq_trials_uuid")),
    )
    op.create_index(op.f("ix_trials_result_id"), "trials", ["result_id"], unique=False)
    op.create_index(op.f("ix_trials_run_id"), "trials", ["run_id"], unique=False)


def downgrade() -> None:
    op.drop_index(op.f("ix_trials_run_id"), table_name="trials")
    op.drop_index(op.f("ix_trials_result_id"), table_name="trials")
    op.drop_table("trials")
    op.drop_index(op.f("ix_changes_time"), table_name="changes")
    op.drop_index(op.f("ix_changes_result_id"), table_name="changes")
    op.drop_index(op.f("ix_changes_case_id"), table_name="changes")
    op.drop_table("changes")
    op.drop_index(op.f("ix_results_run_id"), table_name="results")
    op.drop_index(op.f("ix_results_facts_id"), table_name="results")
    op.drop_index("ix_results_case_time", table_name="results")
    op.drop_table("results")
    op.drop_index(op.f("ix_runs_suite"), table_name="runs")
    op.drop_index(op.f("ix_runs_pack_id"), table_name="runs")
    op.drop_index(op.f("ix_runs_name"), table_name="runs")
    op.drop_index(op.f("ix_runs_machine_id"), table_name="runs")
    op.drop_index(op.f("ix_runs_created"), table_name="runs")
    op.drop_index(op.f("ix_runs_commit"), table_name="runs")
    op.drop_table("runs")
    op.drop_index(op.f("ix_sessions_token_id"), table_name="sessions")
    op.drop_index(op.f("ix_sessions_expires"), table_name="sessions")
    op.drop_table("sessions")
    op.drop_index(op.f("ix_packs_token_id"), table_name="packs")
    op.drop_table("packs")
    op.drop_index(op.f("ix_cases_machine_id"), table_name="cases")
    op.drop_index("ix_cases_leaderboard", table_name="cases")
    op.drop_index(op.f("ix_cases_last_time"), table_name="cases")
    op.drop_index(op.f("ix_cases_last_change_time"), table_name="cases")
    op.drop_table("cases")
    op.drop_table("tokens")
    op.drop_index(op.f("ix_machines_last_seen"), table_name="machines")
    op.drop_index(op.f("ix_machines_device"), table_name="machines")
    op.drop_table("machines")
    op.drop_table("facts")
    op.drop_index(op.f("ix_audit_time"), table_name="audit")
    op.drop_table("audit")
