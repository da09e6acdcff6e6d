"""A server with made-up runs: stored by the server's own code, with figures of a believable shape."""

from __future__ import annotations

import hashlib
import random
import time
import uuid
from dataclasses import dataclass
from statistics import median

from trainmark.measure.key import Key
from trainmark.measure.statistics import median_interval
from trainmark.server.access import tokens
from trainmark.server.access.tokens import Role
from trainmark.server.app import create_app
from trainmark.server.database.engine import open_engine, writing
from trainmark.server.database.migrate import upgrade
from trainmark.server.ingest.check import CheckedResult, CheckedRun
from trainmark.server.ingest.store import Received, store
from trainmark.server.settings import ServerSettings

DAY = 86_400.0
HOSTILE = (
    "</script><script>document.documentElement.dataset.ran='1'</script><img src=x onerror=alert(1)>{{7*7}}'\""
)


@dataclass(frozen=True)
class MadeCase:
    """A case whose throughput takes steps, the day of each and the ratio to the level before, or drifts."""

    key: Key
    rate: float
    unit: str = "images"
    steps: tuple[tuple[int, float], ...] = ()
    daily: float = 1.0
    noise: float = 0.004
    doubts: tuple[str, ...] = ()
    conformance: str = "conformant"


@dataclass(frozen=True)
class MadeMachine:
    """`text` stands in every field that a user can write."""

    host: str
    device: str
    cases: tuple[MadeCase, ...]
    text: str = ""


def key(framework: str, precision: str, batch: int, device: str, workload: str = "resnet50", **more) -> Key:
    axes = (("image_size", 224),) if workload == "resnet50" else (("size", "124m"), ("length", 1024))
    return Key(
        workload,
        framework,
        axes=axes,
        precision=precision,
        loss_scale="dynamic" if precision == "amp" else None,
        data="synthetic",
        batch_per_device=batch,
        device=device,
        **more,
    )


H200, A100 = "NVIDIA H200", "NVIDIA A100-SXM4-80GB"
MACHINES = (
    MadeMachine(
        "gpu-07",
        H200,
        (
            MadeCase(key("pytorch", "amp", 256, H200), 3211, steps=((26, 0.962),)),
            MadeCase(key("jax", "amp", 256, H200), 3368, steps=((18, 1.031),)),
            MadeCase(key("tensorflow", "amp", 256, H200), 2790, conformance="not_conformant"),
            MadeCase(
                key("paddle", "fp32", 128, H200), 1210, doubts=("throttled",), conformance="not_checked"
            ),
            MadeCase(key("pytorch", "bf16", 32, H200, "gpt2", devices_per_node=8), 910_000, "tokens"),
        ),
    ),
    MadeMachine(
        "gpu-11",
        A100,
        (
            MadeCase(key("pytorch", "amp", 256, A100), 2475, steps=((12, 0.95), (27, 1.045))),
            MadeCase(key("jax", "amp", 256, A100), 2502, noise=0.009),
            MadeCase(key("paddle", "amp", 256, A100), 2380, daily=0.999),
        ),
    ),
)


def made_uuid(chance: random.Random) -> str:
    return str(uuid.UUID(int=chance.getrandbits(128), version=4))


def made_run(machine: MadeMachine, day: int, began: float, chance: random.Random, name: str) -> CheckedRun:
    """Return what the check of a packed file would: one run of all cases of a machine."""
    start = began + day * DAY + chance.uniform(0, 3600)
    version = "2.13.0" if day >= 26 else "2.12.1"
    driver = "570.86.15" if day >= 12 else "565.57.01"
    lines, trials = [], []
    for place, case in enumerate(machine.cases):
        level = case.rate * case.daily**day
        for first, ratio in case.steps:
            level *= ratio if day >= first else 1.0
        level *= 1 + chance.gauss(0, case.noise / 2)
        values = [level * (1 + chance.gauss(0, case.noise)) for _ in range(6)]
        interval = median_interval(values)
        facts = {
            "framework_version": version if case.key.framework == "pytorch" else "0.9.0",
            "driver": driver,
            "kernel": "6.8.0-45" + (machine.text if day % 2 else ""),
            "packages.numpy" + machine.text: "2.1.0",
            "python": "3.12.7",
            "commit": hashlib.sha1(f"{day // 3}".encode()).hexdigest(),
        }
        identity = [made_uuid(chance) for _ in values]
        slug = f"{case.key.framework}-{case.key.precision}-b{case.key.batch_per_device}"
        digest = hashlib.sha256(f"{machine.host}{case.key}".encode()).hexdigest()
        lines.append(
            CheckedResult(
                case={
                    "digest": digest,
                    "label": " ".join((case.key.workload, *slug.split("-"), case.key.topology))
                    + machine.text,
                    "workload": case.key.workload + machine.text,
                    "framework": case.key.framework + machine.text,
                    "precision": case.key.precision + machine.text,
                    "device": machine.device + machine.text,
                    "devices": case.key.devices,
                    "unit": case.unit + machine.text[:20],
                    "key": {**case.key.values(), **({machine.text: machine.text} if machine.text else {})},
                },
                result={
                    "name": slug + machine.text,
                    "time": start + place,
                    "throughput": median(values),
                    "low": interval.low,
                    "high": interval.high,
                    "n": 6,
                    "failed": 0,
                    "values": values,
                    "doubts": list(case.doubts) if day % 3 == 0 else [],
                    "conformance": case.conformance,
                    "step_seconds": 0.08,
                    "memory_bytes": 2**34,
                    "mfu": 0.31,
                    "samples_per_joule": 4.1,
                    "efficiency": None,
                },
                facts=facts,
                trials=tuple(identity),
            )
        )
        for repeat, (own, value) in enumerate(zip(identity, values, strict=True)):
            trials.append(
                {
                    "uuid": own,
                    "digest": "0" * 64,
                    "case": slug,
                    "repeat": repeat + 1,
                    "outcome": "ok",
                    "detail": "",
                    "started": start,
                    "seconds": 30.0,
                    "throughput": value,
                    "row": {},
                }
            )
    failed = day % 11 == 5
    if failed:
        lost = {
            "repeat": 7,
            "outcome": "oom",
            "detail": "CUDA out of memory" + machine.text,
            "throughput": None,
        }
        trials.append({**trials[-1], **lost, "uuid": made_uuid(chance)})
    return CheckedRun(
        run={
            "uuid": made_uuid(chance),
            "name": name + machine.text,
            "suite": "nightly" + machine.text,
            "about": machine.text,
            "created": start,
            "version": "0.9.0",
            "command": f"trainmark run nightly.yaml {machine.text}",
            "commit": facts["commit"],
            "ok": len(trials) - failed,
            "failed": int(failed),
            "doubts": sorted({code for line in lines for code in line.result["doubts"]}),
            "environment": {},
            "scrubbed": scrubbed(machine.text),
        },
        machine={
            "digest": hashlib.sha256(f"{machine.host}\n{machine.device}".encode()).hexdigest(),
            "name": machine.host + machine.text,
            "device": machine.device + machine.text,
            "facts": {},
        },
        lines=tuple(lines),
        trials=tuple(trials),
        signer=None,
    )


def scrubbed(text: str) -> dict:
    note = {
        "member": f"trials/x/01/logs/rank0.log{text}",
        "kind": text or "home path",
        "count": 4,
        "places": [f"line 7{text}"],
    }
    return {"count": 8, "notes": [{**note, "kind": "secret"}, note]}


def stored(engine, checked: CheckedRun, identity: tokens.Identity, digest: str = "") -> str:
    digest = digest or hashlib.sha256(checked.run["uuid"].encode()).hexdigest()
    with writing(engine) as connection:
        store(connection, checked, Received(digest, 181_233, identity, "127.0.0.1"))
    return digest


@dataclass(frozen=True)
class Served:
    app: object
    settings: ServerSettings
    secrets: dict[str, str]


def sample_app(folder, machines=MACHINES, days: int = 30, public: bool = False) -> Served:
    settings = ServerSettings(
        folder / "data", public=public, requests_per_minute=100_000, logins_per_minute=1000
    )
    engine = open_engine(settings)
    upgrade(engine)
    with writing(engine) as connection:
        secrets = {role.value: tokens.create(connection, f"{role.value}-bot", role) for role in Role}
        identity = tokens.identity(connection, secrets["push"])
    chance, began = random.Random(4), time.time() - days * DAY
    for day in range(days):
        for machine in machines:
            stored(engine, made_run(machine, day, began, chance, f"nightly-{day + 1:02d}"), identity)
    engine.dispose()
    return Served(create_app(settings), settings, secrets)
