"""A hundred thousand results written straight into a database, as if they had been pushed."""

from __future__ import annotations

import hashlib
import random
import uuid
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Engine, insert

from trainmark import __version__
from trainmark.measure.history.series import RunPoint
from trainmark.server.database.engine import writing
from trainmark.server.database.models import (
    CaseTable,
    ChangeTable,
    FactSetTable,
    MachineTable,
    PackTable,
    ResultTable,
    RunTable,
    TrialTable,
)
from trainmark.server.ingest.store import RECENT, change_rows

START, DAY = 1_780_000_000.0, 86_400.0
CASES_A_RUN, CASES_A_MACHINE = 10, 50
TRIALS = 3
BATCH = 2_000
WORKLOADS = ("resnet50", "gpt2", "bert", "llama")
FRAMEWORKS = ("pytorch", "jax", "tensorflow", "paddle", "mindspore")
DEVICES = ("H100", "A100", "V100", "MI300X", "Xeon")
PACKAGES = {f"packages.package{number}": f"1.{number}.0" for number in range(120)}


def fill(engine: Engine, cases: int = 1_000, results: int = 100_000, seed: int = 0) -> None:
    """Fill an empty database: every case has as many results, a fifth of them a step of level."""
    chance, each = random.Random(seed), results // cases
    machines = -(-cases // CASES_A_MACHINE)
    with writing(engine) as connection:
        _insert(connection, MachineTable, [_machine(number, each) for number in range(1, machines + 1)])
        _insert(connection, FactSetTable, [_fact_set(number) for number in range(1, machines + 1)])
        runs = _runs(cases, each)
        by_place = {(run["machine_id"], run["group"], run["time"]): run for run in runs}
        _insert(connection, PackTable, [_pack(run["id"]) for run in runs])
        _insert(connection, RunTable, runs)
        case_rows: list[dict[str, Any]] = []
        result_rows: list[dict[str, Any]] = []
        changes: list[dict[str, Any]] = []
        for number in range(1, cases + 1):
            machine, group = _place(number)
            own = _results(number, machine, group, each, by_place, chance)
            points = [
                RunPoint(str(row["id"]), row["time"], tuple(row["values"]), row["own_facts"]) for row in own
            ]
            changed = change_rows(number, [row["id"] for row in own], points)
            case_rows.append(_case(number, machine, own, changed))
            result_rows += own
            changes += changed
        _insert(connection, CaseTable, case_rows)
        _insert(connection, ResultTable, result_rows)
        _insert(connection, TrialTable, [_trial(row, 1) for row in result_rows])
        _insert(connection, ChangeTable, changes)
    if engine.dialect.name == "postgresql":
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.exec_driver_sql("VACUUM ANALYZE")


def _insert(connection: Connection, table: Any, rows: Sequence[dict[str, Any]]) -> None:
    for start in range(0, len(rows), BATCH):
        connection.execute(insert(table), [_known(table, row) for row in rows[start : start + BATCH]])


def _known(table: Any, row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name in table.__table__.columns}


def _place(case: int) -> tuple[int, int]:
    """The machine of a case, and which of its groups of ten it is measured with."""
    machine, place = divmod(case - 1, CASES_A_MACHINE)
    return machine + 1, place // CASES_A_RUN


def _machine(number: int, each: int) -> dict[str, Any]:
    return {
        "id": number,
        "digest": _digest("machine", number),
        "name": f"node{number:03d}",
        "device": DEVICES[number % len(DEVICES)],
        "facts": {"host": {"kernel": "Linux 6.1.0"}},
        "first_seen": START,
        "last_seen": START + each * DAY,
        "runs": each * CASES_A_MACHINE // CASES_A_RUN,
    }


def _fact_set(number: int) -> dict[str, Any]:
    facts = {"kernel": "Linux 6.1.0", "driver": "550.54", "framework_version": "2.9.1", **PACKAGES}
    return {"id": number, "digest": _digest("facts", number), "facts": facts}


def _pack(number: int) -> dict[str, Any]:
    sha256 = _digest("pack", number)
    return {"id": number, "sha256": sha256, "bytes": 7000, "received": START, "token": "ci"}


def _runs(cases: int, each: int) -> list[dict[str, Any]]:
    groups = list(dict.fromkeys(_place(case) for case in range(1, cases + 1)))
    return [
        {
            "id": time * len(groups) + place + 1,
            "uuid": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{machine} {group} {time}")),
            "name": f"nightly-{machine}-{group}-{time}",
            "suite": f"nightly-{group}",
            "about": "generated",
            "created": START + time * DAY + 600 * group,
            "pushed": START + time * DAY + 3600,
            "version": __version__,
            "command": "trainmark run nightly.yaml",
            "commit": _digest("commit", time)[:40],
            "pack_id": time * len(groups) + place + 1,
            "machine_id": machine,
            "ok": CASES_A_RUN * TRIALS,
            "failed": 0,
            "doubts": ["few-trials"],
            "words": f"nightly-{machine}-{group}-{time} nightly-{group} {_digest('commit', time)[:40]}",
            "environment": {"host": {"kernel": "Linux 6.1.0"}, "software": {"packages": PACKAGES}},
            "group": group,
            "time": time,
        }
        for time in range(each)
        for place, (machine, group) in enumerate(groups)
    ]


def _results(
    number: int,
    machine: int,
    group: int,
    each: int,
    runs: dict[tuple[int, int, int], dict[str, Any]],
    chance: random.Random,
) -> list[dict[str, Any]]:
    level, step = 100.0 * number, chance.choice([1.0] * 4 + [0.95, 1.04])
    changed = chance.randrange(10, each - 8) if each > 20 else each
    rows = []
    for time in range(each):
        base = level * (step if time >= changed else 1.0) * chance.gauss(1.0, 0.004)
        values = sorted(base * chance.gauss(1.0, 0.003) for _ in range(TRIALS))
        run = runs[machine, group, time]
        rows.append(
            {
                "id": (number - 1) * each + time + 1,
                "case_id": number,
                "run_id": run["id"],
                "name": f"case-{number}",
                "time": run["created"] + 60,
                "throughput": values[TRIALS // 2],
                "low": values[0],
                "high": values[-1],
                "n": TRIALS,
                "failed": 0,
                "values": values,
                "facts_id": machine,
                "own_facts": {"commit": run["commit"], "clock_mhz": f"{chance.gauss(1980, 5):.4g}"},
                "doubts": ["few-trials"] if number % 3 == 0 else [],
                "conformance": "conformant",
                "step_seconds": 0.1,
                "memory_bytes": 2**33,
                "mfu": 0.4,
                "samples_per_joule": None,
                "efficiency": None,
            }
        )
    return rows


def _case(number: int, machine: int, own: Sequence[dict[str, Any]], changed: Sequence[Any]) -> dict[str, Any]:
    workload, framework = WORKLOADS[number % 4], FRAMEWORKS[number % 5]
    device, last, batch = DEVICES[machine % len(DEVICES)], own[-1], 8 * (1 + number % 50)
    key = {"workload": workload, "framework": framework, "precision": "bf16", "batch_per_device": batch}
    return {
        "id": number,
        "digest": _digest("case", number)[:16],
        "machine_id": machine,
        "label": f"{workload} {framework} bf16 b{batch} 1n8g v{number}",
        "workload": workload,
        "framework": framework,
        "precision": "bf16",
        "device": device,
        "devices": 8,
        "unit": "samples",
        "key": {**key, "nodes": 1, "devices_per_node": 8, "device": device, "variant": f"v{number}"},
        "results": len(own),
        "first_time": own[0]["time"],
        "last_time": last["time"],
        "last_throughput": last["throughput"],
        "last_low": last["low"],
        "last_high": last["high"],
        "last_n": last["n"],
        "last_run_id": last["run_id"],
        "last_version": "2.9.1",
        "last_doubts": last["doubts"],
        "last_mfu": last["mfu"],
        "conformance": "conformant",
        "best_throughput": max(row["throughput"] for row in own),
        "changes": len(changed),
        "last_change_time": changed[-1]["time"] if changed else None,
        "last_change_ratio": changed[-1]["ratio"] if changed else None,
        "recent": [row["throughput"] for row in own[-RECENT:]],
    }


def _trial(row: dict[str, Any], repeat: int) -> dict[str, Any]:
    name = f"{row['id']} {repeat}"
    return {
        "uuid": str(uuid.uuid5(uuid.NAMESPACE_URL, f"trial {name}")),
        "digest": _digest("trial", row["id"]),
        "run_id": row["run_id"],
        "result_id": row["id"],
        "case": row["name"],
        "repeat": repeat,
        "outcome": "ok",
        "detail": "",
        "started": row["time"],
        "seconds": 30.0,
        "throughput": row["throughput"],
        "row": {"case": row["name"], "repeat": repeat, "throughput": row["throughput"]},
    }


def _digest(kind: str, number: int) -> str:
    return hashlib.sha256(f"{kind} {number}".encode()).hexdigest()
