"""Clients that push while the server is killed again and again."""

from __future__ import annotations

import random
import threading
import time
import urllib.error
from collections.abc import Sequence
from dataclasses import dataclass, field
from http.client import HTTPException
from pathlib import Path

from sqlalchemy import func, select

from benchmarks.serving.process import ServerProcess
from trainmark.server.database.engine import open_engine, reading
from trainmark.server.database.models import CaseTable, PackTable, ResultTable, RunTable, TrialTable
from trainmark.server.ingest.ingest import pack_path

CLIENTS = 20
# After so many acknowledgements as are drawn: wherever that falls in the pushes that are under way.
LONGEST_WAIT = 0.5


@dataclass
class Outcome:
    """What the clients saw; `acknowledged` are UUIDs of runs whose push was answered with success."""

    acknowledged: set[str] = field(default_factory=set)
    refused: list[str] = field(default_factory=list)
    kills: int = 0
    interrupted: int = 0
    acknowledged_before_a_kill: int = 0


def push_through_crashes(
    server: ServerProcess, files: Sequence[Path], token: str, kills: int, seed: int = 0
) -> Outcome:
    """Let 20 clients push all files, each until it is acknowledged, while the server is killed `kills` times.

    Once the kills are over, the rest is pushed in peace.
    """
    outcome, lock, remaining = Outcome(), threading.Lock(), list(files)
    stopped = threading.Event()

    def client() -> None:
        while not stopped.is_set():
            with lock:
                if not remaining:
                    return
                file = remaining.pop()
            try:
                answer = server.push(file, token)
            except (urllib.error.URLError, HTTPException, OSError):
                with lock:
                    outcome.interrupted += 1
                    remaining.insert(0, file)
                time.sleep(0.1)
                continue
            with lock:
                if answer.status in (200, 201):
                    outcome.acknowledged.add(answer.json["run"])
                elif answer.status in (429, 503):
                    remaining.insert(0, file)
                else:
                    outcome.refused.append(f"{answer.status} {answer.body!r:.200}")

    clients = [threading.Thread(target=client) for _ in range(CLIENTS)]
    for thread in clients:
        thread.start()
    chance = random.Random(seed)
    try:
        for _ in range(kills):
            wanted = len(outcome.acknowledged) + chance.randint(0, len(files) // (kills + 1))
            while len(outcome.acknowledged) < wanted and any(thread.is_alive() for thread in clients):
                time.sleep(0.01)
            time.sleep(chance.uniform(0.0, LONGEST_WAIT))
            server.kill()
            outcome.kills += 1
            outcome.acknowledged_before_a_kill = len(outcome.acknowledged)
            server.start()
    except BaseException:
        stopped.set()
        raise
    for thread in clients:
        thread.join()
    return outcome


def damage(server: ServerProcess, acknowledged: set[str]) -> list[str]:
    """Return what is wrong with the database and the files: nothing unless it was lost or half stored."""
    engine, wrong = open_engine(server.settings), []
    with reading(engine) as connection:
        stored = set(connection.execute(select(RunTable.uuid)).scalars())
        wrong += [f"run {uuid} was acknowledged and is gone" for uuid in acknowledged - stored]
        for uuid, ok, failed, trials in connection.execute(
            select(RunTable.uuid, RunTable.ok, RunTable.failed, func.count(TrialTable.id))
            .outerjoin(TrialTable)
            .group_by(RunTable.id)
        ):
            if ok + failed != trials:
                wrong.append(f"run {uuid} has {trials} of {ok + failed} trials")
        without = select(RunTable.uuid).outerjoin(ResultTable).where(ResultTable.id.is_(None))
        wrong += [f"run {uuid} has no result" for uuid in connection.execute(without).scalars()]
        for label, results, counted in connection.execute(
            select(CaseTable.label, CaseTable.results, func.count(ResultTable.id))
            .outerjoin(ResultTable)
            .group_by(CaseTable.id)
        ):
            if results != counted:
                wrong.append(f"case {label} says {results} results and has {counted}")
        for sha256, size in connection.execute(select(PackTable.sha256, PackTable.bytes)):
            path = pack_path(server.settings, sha256)
            if not path.exists() or path.stat().st_size != size:
                wrong.append(f"the packed file {sha256} is not whole")
    engine.dispose()
    return wrong
