"""Pages of a server with 100,000 results under 20 clients, beside its empty page; pushes through kills."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from random import Random

from benchmarks.row import Row
from benchmarks.serving.clients import times
from benchmarks.serving.crashes import CLIENTS, damage, push_through_crashes
from benchmarks.serving.data import fill
from benchmarks.serving.packs import MadeRun, packed
from benchmarks.serving.postgres import NoPostgresError, cluster
from benchmarks.serving.process import ServerProcess
from trainmark.server.access.tokens import Role
from trainmark.server.database.engine import open_engine, reading
from trainmark.server.database.run_queries import runs

MOST_MS = 200.0
MOST_GROWTH_MB = 60.0
EMPTY = "/healthz"


def measure(
    cases: int = 1_000, results: int = 100_000, requests: int = 600, kills: int = 50, packs: int = 200
) -> list[Row]:
    """`requests` of every page by all clients together; SQLite, and PostgreSQL where it is installed."""
    rows = []
    with ExitStack() as stack:
        databases: dict[str, str | None] = {"SQLite": None}
        try:
            databases["PostgreSQL"] = stack.enter_context(cluster())
        except NoPostgresError as error:
            print(f"server: {error}")
        for name, url in databases.items():
            with tempfile.TemporaryDirectory() as folder:
                rows += _load(name, Path(folder), url, cases, results, requests)
        with tempfile.TemporaryDirectory() as folder:
            rows += _crashes(Path(folder), kills, packs)
    return rows


def _load(name: str, folder: Path, url: str | None, cases: int, results: int, requests: int) -> list[Row]:
    server = ServerProcess(folder, url, "--workers", "2", "--requests", "1000000")
    token = server.token("bench", Role.ADMIN)
    engine = open_engine(server.settings)
    fill(engine, cases, results)
    with reading(engine) as connection:
        uuids = [run.uuid for run in runs(connection, most=200)]
    engine.dispose()
    server.start()
    rows = []
    try:
        for path in _pages(cases, uuids).values():
            server.request(path(Random(0)), token)
        before = server.memory_mb()
        for page, path in {"an empty page": lambda chance: EMPTY, **_pages(cases, uuids)}.items():
            began = server.cpu_seconds()
            seconds = times(server.url, token, path, CLIENTS, max(1, requests // CLIENTS))
            cpu = (server.cpu_seconds() - began) / len(seconds) * 1e3
            percentile = statistics.quantiles(seconds, n=20)[-1] * 1e3
            what = f"server: {page}, {name}, 95th percentile"
            rows.append(Row(what, percentile, "ms", None if page == "an empty page" else MOST_MS))
            rows.append(Row(f"server: {page}, {name}, processor time", cpu, "ms"))
        grown = server.memory_mb() - before
        rows.append(Row(f"server: memory grown under load, {name}", grown, "MB", MOST_GROWTH_MB))
    finally:
        server.stop()
    return rows


def _pages(cases: int, uuids: Sequence[str]) -> dict[str, Callable[[Random], str]]:
    """Addresses drawn at random, so that most pages are made and not only sent again."""
    return {
        "overview": lambda chance: f"/?since={chance.randrange(10**6)}",
        "case over time": lambda chance: f"/cases/{chance.randint(1, cases)}",
        "run": lambda chance: f"/runs/{chance.choice(uuids)}",
        "machine": lambda chance: f"/machines/{chance.randint(1, max(1, cases // 50))}",
        "list of cases": lambda chance: f"/cases?page={chance.randint(1, max(1, cases // 50))}",
        "list of runs": lambda chance: f"/runs?page={chance.randint(1, max(1, len(uuids) // 50))}",
        "comparison": lambda chance: (
            "/compare?" + "&".join(f"run={uuid}" for uuid in chance.sample(uuids, 2))
        ),
        "list of machines": lambda chance: "/machines",
        "published rows": lambda chance: f"/published?page={chance.randint(1, 5)}",
        "leaderboard": lambda chance: "/leaderboard",
        "search": lambda chance: f"/search?q=nightly-{chance.randint(1, 20)}-{chance.randrange(5)}",
        "API: history": lambda chance: f"/api/v1/cases/{chance.randint(1, cases)}/history",
        "API: cases": lambda chance: f"/api/v1/cases?offset={chance.randrange(cases)}",
    }


def _crashes(folder: Path, kills: int, packs: int) -> list[Row]:
    files = [packed(folder / "packs", MadeRun(name=f"run-{n}", day=n, rates=(80.0,))) for n in range(packs)]
    server = ServerProcess(folder / "server")
    token = server.token("bench", Role.PUSH)
    server.start()
    outcome = push_through_crashes(server, files, token, kills)
    server.kill()
    wrong = damage(server, outcome.acknowledged)
    lost = len(files) - len(outcome.acknowledged) + len(outcome.refused)
    return [
        Row(f"server: pushes cut short by {outcome.kills} kills", outcome.interrupted, "pushes"),
        Row("server: files never acknowledged", lost, "files", 0),
        Row("server: lost or half-stored after the kills", len(wrong), "rows", 0),
    ]
