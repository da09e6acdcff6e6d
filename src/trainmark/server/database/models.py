"""The tables: packed files, what follows from them, and who may do what.

Every figure here was computed from the events of a packed file, and can be computed again. `cases` carries a
summary of its own history, and `changes` what a change-point analysis says of it; both are brought up to date
in the transaction that stores a run.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import JSON, BigInteger, Float, ForeignKey, Index, Integer, MetaData, String, Text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

NAMING = {
    "ix": "ix_%(column_0_label)s",
    "uq": "uq_%(table_name)s_%(column_0_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s",
    "pk": "pk_%(table_name)s",
}
# SQLite gives row numbers to INTEGER keys only.
Id = BigInteger().with_variant(Integer, "sqlite")
DIGEST, SHORT, LONG = 64, 200, 2000


class Base(DeclarativeBase):
    metadata = MetaData(naming_convention=NAMING)
    type_annotation_map = {dict[str, Any]: JSON, list[Any]: JSON, float: Float(53)}  # noqa: RUF012


class TokenTable(Base):
    """`hash` is the SHA-256 of 256 random bits; the token itself is shown once and stored nowhere.

    `suites` is a pattern that the suite of a pushed run must match.
    """

    __tablename__ = "tokens"
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    name: Mapped[str] = mapped_column(String(SHORT), unique=True)
    hash: Mapped[str] = mapped_column(String(DIGEST), unique=True)
    role: Mapped[str] = mapped_column(String(16))
    suites: Mapped[str | None] = mapped_column(String(SHORT))
    created: Mapped[float]
    expires: Mapped[float | None]
    revoked: Mapped[float | None]
    used: Mapped[float | None]


class SessionTable(Base):
    """A browser that has logged in with a token."""

    __tablename__ = "sessions"
    hash: Mapped[str] = mapped_column(String(DIGEST), primary_key=True)
    token_id: Mapped[int] = mapped_column(ForeignKey("tokens.id", ondelete="CASCADE"), index=True)
    created: Mapped[float]
    expires: Mapped[float] = mapped_column(index=True)


class AuditTable(Base):
    """`token` is the name of the one who did it; the entry outlives the token."""

    __tablename__ = "audit"
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    time: Mapped[float] = mapped_column(index=True)
    token: Mapped[str | None] = mapped_column(String(SHORT))
    address: Mapped[str | None] = mapped_column(String(SHORT))
    action: Mapped[str] = mapped_column(String(40))
    subject: Mapped[str] = mapped_column(String(SHORT))
    detail: Mapped[str] = mapped_column(Text)


class PackTable(Base):
    """A packed file under `packs/`, named by its digest."""

    __tablename__ = "packs"
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    sha256: Mapped[str] = mapped_column(String(DIGEST), unique=True)
    bytes: Mapped[int] = mapped_column(BigInteger)
    received: Mapped[float]
    token_id: Mapped[int | None] = mapped_column(ForeignKey("tokens.id", ondelete="SET NULL"), index=True)
    token: Mapped[str] = mapped_column(String(SHORT))
    signer: Mapped[str | None] = mapped_column(String(SHORT))


class MachineTable(Base):
    """A host and its devices; `digest` is that of the host's name and the device."""

    __tablename__ = "machines"
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    digest: Mapped[str] = mapped_column(String(DIGEST), unique=True)
    name: Mapped[str] = mapped_column(String(SHORT))
    device: Mapped[str] = mapped_column(String(SHORT), index=True)
    facts: Mapped[dict[str, Any]]
    first_seen: Mapped[float]
    last_seen: Mapped[float] = mapped_column(index=True)
    runs: Mapped[int]


class RunTable(Base):
    """`pack_id` is the newest packed file of the run; `environment` as recorded and scrubbed.

    `scrubbed` has the number of masked values and where they were; None where that is not known.
    """

    __tablename__ = "runs"
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    uuid: Mapped[str] = mapped_column(String(36), unique=True)
    name: Mapped[str] = mapped_column(String(SHORT), index=True)
    suite: Mapped[str] = mapped_column(String(SHORT), index=True)
    about: Mapped[str] = mapped_column(Text)
    created: Mapped[float] = mapped_column(index=True)
    pushed: Mapped[float]
    version: Mapped[str] = mapped_column(String(40))
    command: Mapped[str] = mapped_column(Text)
    commit: Mapped[str | None] = mapped_column(String(SHORT), index=True)
    pack_id: Mapped[int] = mapped_column(ForeignKey("packs.id"), index=True)
    machine_id: Mapped[int] = mapped_column(ForeignKey("machines.id"), index=True)
    ok: Mapped[int]
    failed: Mapped[int]
    doubts: Mapped[list[Any]]
    """Of any of its results."""
    words: Mapped[str] = mapped_column(String(LONG))
    """What a search looks at, in small letters."""
    environment: Mapped[dict[str, Any]]
    scrubbed: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))


class CaseTable(Base):
    """A line of a history: a case key without the framework's version, on one machine.

    From `results` on it sums up its history: how many, the newest and the fastest result, the newest change.
    """

    __tablename__ = "cases"
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    digest: Mapped[str] = mapped_column(String(DIGEST), unique=True)
    machine_id: Mapped[int] = mapped_column(ForeignKey("machines.id"), index=True)
    label: Mapped[str] = mapped_column(String(LONG))
    workload: Mapped[str] = mapped_column(String(SHORT))
    framework: Mapped[str] = mapped_column(String(SHORT))
    precision: Mapped[str] = mapped_column(String(SHORT))
    device: Mapped[str] = mapped_column(String(SHORT))
    devices: Mapped[int]
    unit: Mapped[str] = mapped_column(String(40))
    key: Mapped[dict[str, Any]]
    results: Mapped[int]
    first_time: Mapped[float]
    last_time: Mapped[float] = mapped_column(index=True)
    last_throughput: Mapped[float]
    last_low: Mapped[float | None]
    last_high: Mapped[float | None]
    last_n: Mapped[int]
    last_run_id: Mapped[int]
    last_version: Mapped[str | None] = mapped_column(String(SHORT))
    last_doubts: Mapped[list[Any]]
    last_mfu: Mapped[float | None]
    conformance: Mapped[str] = mapped_column(String(20))
    best_throughput: Mapped[float]
    changes: Mapped[int]
    last_change_time: Mapped[float | None] = mapped_column(index=True)
    last_change_ratio: Mapped[float | None]
    recent: Mapped[list[Any]]
    """Medians of the newest results, oldest first, for a small chart."""

    __table_args__ = (Index("ix_cases_leaderboard", "workload", "device", "last_throughput"),)


class FactSetTable(Base):
    """Recorded facts that many results share: a machine's software changes rarely."""

    __tablename__ = "facts"
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    digest: Mapped[str] = mapped_column(String(DIGEST), unique=True)
    facts: Mapped[dict[str, Any]]


class ResultTable(Base):
    """A case in one run; `time` is when its first trial started, `values` the trials' throughputs.

    Its facts are those of `facts_id` and `own_facts`: what differs from run to run, such as the commit.
    `minor_doubts` are those of its doubts that are no more than a caution, since few of its trials have them.
    """

    __tablename__ = "results"
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    case_id: Mapped[int] = mapped_column(ForeignKey("cases.id"))
    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"), index=True)
    name: Mapped[str] = mapped_column(String(SHORT))
    time: Mapped[float]
    throughput: Mapped[float]
    low: Mapped[float | None]
    high: Mapped[float | None]
    n: Mapped[int]
    failed: Mapped[int]
    values: Mapped[list[Any]]
    facts_id: Mapped[int] = mapped_column(ForeignKey("facts.id"), index=True)
    own_facts: Mapped[dict[str, Any]]
    doubts: Mapped[list[Any]]
    minor_doubts: Mapped[list[Any]] = mapped_column(server_default="[]")
    conformance: Mapped[str] = mapped_column(String(20))
    step_seconds: Mapped[float | None]
    memory_bytes: Mapped[int | None] = mapped_column(BigInteger)
    mfu: Mapped[float | None]
    samples_per_joule: Mapped[float | None]
    efficiency: Mapped[float | None]

    __table_args__ = (Index("ix_results_case_time", "case_id", "time"),)


class TrialTable(Base):
    """One trial, failed ones included (`result_id` is None where no trial of the case has a figure)."""

    __tablename__ = "trials"
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    uuid: Mapped[str] = mapped_column(String(36), unique=True)
    digest: Mapped[str] = mapped_column(String(DIGEST))
    run_id: Mapped[int] = mapped_column(ForeignKey("runs.id"), index=True)
    result_id: Mapped[int | None] = mapped_column(ForeignKey("results.id"), index=True)
    case: Mapped[str] = mapped_column(String(SHORT))
    repeat: Mapped[int]
    outcome: Mapped[str] = mapped_column(String(20))
    detail: Mapped[str] = mapped_column(Text)
    started: Mapped[float]
    seconds: Mapped[float]
    throughput: Mapped[float | None]
    row: Mapped[dict[str, Any]]


class ChangeTable(Base):
    """A change point of a case's history; `result_id` is the first result of the new level."""

    __tablename__ = "changes"
    id: Mapped[int] = mapped_column(Id, primary_key=True)
    case_id: Mapped[int] = mapped_column(ForeignKey("cases.id"), index=True)
    result_id: Mapped[int] = mapped_column(ForeignKey("results.id"), index=True)
    time: Mapped[float] = mapped_column(index=True)
    ratio: Mapped[float]
    low: Mapped[float]
    high: Mapped[float]
    probability: Mapped[float]
    confirmed_by: Mapped[int]
    facts: Mapped[list[Any]]
    """Recorded facts that changed with it, the best fit first, as [name, before, after]."""
