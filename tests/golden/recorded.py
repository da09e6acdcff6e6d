"""Recorded runs: folders as `trainmark run` leaves them, at fixed times and from fixed seeds.

They are written as plain JSON and without Trainmark, as what an earlier version has left on a disk. A trial
has its events and a figure that is none; `trainmark pack --recompute` puts the one that follows in its place.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import yaml

RUNS = Path(__file__).with_name("recorded_runs.yaml")
PLACES = ("recorded", "recorded/watch", "nightly")
WARMUP = 10
GIB = 1 << 30
SLOW_START = (30, 4, 1.5, 1.2)
"""How much longer the first steps take."""

NO_FIGURE = {
    **{"throughput": 1.0, "interval": None, "unit": "", "world_size": 1, "seconds": 1.0, "samples": 1.0},
    "window": {"first": 0, "stop": 1, "verdict": "settled"},
    "step_times": dict.fromkeys(("mean", "p50", "p90", "p99", "longest"), 1.0),
    "first_step_seconds": 1.0,
}


@dataclass(frozen=True)
class Case:
    """One case of a run, with a trial for each of the `rates`; text in place of a rate is how it ended.

    `data_wait` and `communication` are shares of a step. `slow` has by how much longer a rank computes,
    `long_step` of how many steps one is longer, and how many times.
    """

    name: str
    key: Mapping[str, Any]
    rates: Sequence[float | str]
    unit: str = "images"
    batch: int | None = None
    steps: int = 44
    facts: Mapping[str, Any] = field(default_factory=dict)
    end_facts: Mapping[str, Any] = field(default_factory=dict)
    command: str = "python -m trainmark.workloads.resnet50.pytorch --steps 44 --seed 1"
    data_wait: float = 0.004
    communication: float = 0.0
    slow: Mapping[int, float] = field(default_factory=dict)
    long_step: tuple[int, float] | None = None
    device_samples: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    epochs: int = 0
    details: Mapping[str, str] = field(default_factory=dict)

    @property
    def samples_per_step(self) -> int:
        """Of one rank."""
        return self.batch or self.key.get("batch_per_device", 32)

    @property
    def ranks(self) -> int:
        return self.key["nodes"] * self.key["devices_per_node"]

    def node(self, rank: int) -> str:
        return f"node{rank // self.key['devices_per_node'] + 1}"


@dataclass(frozen=True)
class Run:
    name: str
    cases: Sequence[Mapping[str, Any]]
    created: float
    about: str = ""
    suite: str = "name: recorded\nworkload: resnet50\n"
    command: str = "trainmark run recorded.yaml"
    environment: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, Any] = field(default_factory=dict)
    skipped: Sequence[Sequence[str]] = ()
    against: Sequence[str] = ()
    unfinished: int = 0
    damage: Mapping[str, str] = field(default_factory=dict)
    """What some files hold in place of what was written."""

    @property
    def uuid(self) -> str:
        return identity(self.name, self.created)


def recorded_runs() -> list[tuple[str, Run]]:
    """Return all runs, each with the folder that it belongs into."""
    described = yaml.safe_load(RUNS.read_text(encoding="utf-8"))
    return [(place, Run(**run)) for place in PLACES for run in described[place]]


def identity(*parts: Any) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, "/".join(map(str, parts))))


def write_json(path: Path, plain: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(plain, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def write_lines(path: Path, objects: Iterable[Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(each) + "\n" for each in objects), encoding="utf-8")


def write_run(folder: Path, run: Run) -> None:
    cases = [Case(**case) for case in run.cases]
    planned = run.unfinished + sum(len(case.rates) for case in cases)
    names = ("name", "about", "command", "skipped", "against", "uuid")
    info = {"suite": "recorded", "version": "0.0.9", "folder": None, "schema": 2}
    info |= {"created": float(run.created), "least": planned, "most": planned}
    files = {"run.json": {**info, **{name: getattr(run, name) for name in names}}, **run.files}
    files |= {"environment.json": run.environment, "facts.json": run.facts}
    if not run.unfinished:
        files["ended.json"] = {"ended": run.created + 7200}
    for name, plain in files.items():
        write_json(folder / name, plain)
    (folder / "suite.yaml").write_text(run.suite, encoding="utf-8")
    for case in cases:
        for repeat, rate in enumerate(case.rates, 1):
            write_trial(folder / "trials" / case.name / f"{repeat:02d}", run, case, repeat, rate)


def write_trial(folder: Path, run: Run, case: Case, repeat: int, rate: float | str) -> None:
    started, ok = run.created + 120.0 * repeat, not isinstance(rate, str)
    detail = "" if ok else case.details.get(str(rate), "")
    spec = {"case": case.name, "repeat": repeat, "command": case.command, "key": case.key}
    spec |= {"started": started, "uuid": identity(run.uuid, case.name, repeat), "schema": 2}
    spec |= {"steps": case.steps, "warmup_steps": WARMUP, "fingerprint": "f1ngerpr1nt"}
    spec |= {"environment": {"OMP_NUM_THREADS": "2"}}
    record = {"key": case.key, "outcome": "ok" if ok else rate, "detail": detail, "started": started}
    record |= {"rank": None if ok else 0, "retries": ["crashed: port taken"] if repeat == 2 else []}
    record |= {"seconds": 3600.0, "environment": "f1ngerpr1nt", "figure": NO_FIGURE if ok else None}
    write_json(folder / "trial.json", spec)
    write_json(folder / "figure.json", record)
    write_json(folder / "environment.json", run.environment)
    (folder / "logs").mkdir()
    log = "".join(f"step {step}: loss {7 - step / 30:.3f}\n" for step in range(case.steps)) + detail
    (folder / "logs" / "rank0.log").write_text(log, encoding="utf-8")
    if isinstance(rate, str):
        return
    for rank in range(case.ranks):
        own = RankEvents(case, rank, started).all(Random(f"{run.name} {case.name} {repeat}"), rate, repeat)
        write_lines(folder / "events" / f"rank{rank}.jsonl", own)
    if case.device_samples:
        write_lines(folder / "samples.jsonl", samples(case, started, own[-1]["mono"]))


class RankEvents:
    """What one rank reports of a trial; all ranks end their steps together."""

    def __init__(self, case: Case, rank: int, started: float) -> None:
        self.case, self.rank, self.started, self.clock = case, rank, started, 1000.0
        self.events: list[dict[str, Any]] = []

    def emit(self, event: str, **values: Any) -> None:
        times = {"mono": round(self.clock, 6), "wall": round(self.started - 1000 + self.clock, 6)}
        self.events.append({"event": event, "rank": self.rank, **times, **values})

    def all(self, chance: Random, rate: float, seed: int) -> list[dict[str, Any]]:
        case = self.case
        facts = {"framework": case.key.get("framework"), "device_name": case.key["device"], "seed": seed}
        facts |= {"node": case.node(self.rank)} if case.ranks > 1 else {}
        facts |= {"process_started": self.started - 14} if case.epochs else {}
        self.emit("run_start", world_size=case.ranks, unit=case.unit, scope="rank", facts=facts | case.facts)
        steps_per_epoch = case.steps // (case.epochs or 1)
        for step in range(case.steps):
            epoch, place = divmod(step, steps_per_epoch)
            if place == 0 and epoch < case.epochs:
                self.emit("epoch", facts={"epoch": epoch, "state": "begin"})
            self.step(step, case.samples_per_step * case.ranks / rate * chance.uniform(0.995, 1.005))
            self.events[-1]["loss"] = round(7 - 5 * step / case.steps + chance.uniform(-0.1, 0.1), 4)
            if place == steps_per_epoch - 1 and epoch < case.epochs:
                self.emit("epoch", facts={"epoch": epoch, "state": "end"})
                self.evaluate(epoch, 0.82 - 0.6 / (epoch + 1) + 0.01 * seed)
        self.clock += 0.2
        self.emit("run_end", facts=dict(case.end_facts))
        return self.events

    def step(self, step: int, seconds: float) -> None:
        case = self.case
        seconds *= SLOW_START[step] if step < len(SLOW_START) else 1
        if case.long_step and step % case.long_step[0] == 5:
            seconds *= case.long_step[1]
        self.clock += seconds
        parts = {"data_wait": seconds * case.data_wait}
        if case.communication:
            longer = 1 + case.slow.get(self.rank, 0.0)
            parts["compute"] = seconds * (1 - case.communication - case.data_wait) * longer
            parts["communication"] = max(0.0, seconds - parts["data_wait"] - parts["compute"])
        rounded = {name: round(value, 7) for name, value in parts.items()}
        self.emit("step", step=step, samples=case.samples_per_step, memory=24 * GIB, **rounded)

    def evaluate(self, epoch: int, top1: float) -> None:
        self.emit("eval", facts={"epoch": epoch, "state": "begin"})
        self.clock += 3.5
        scores = {"top1": round(top1, 4), "top5": round(top1 + 0.1, 4), "samples": 5000}
        self.emit("eval", facts={"epoch": epoch, "state": "end", **scores})


def samples(case: Case, started: float, ended: float) -> Iterable[dict[str, Any]]:
    """Yield readings of every device, and of the host."""
    for number in range(16):
        mono = round(1000 + (ended - 1000) * number / 15, 3)
        times = {"event": "device_sample", "mono": mono, "wall": round(started - 1000 + mono, 3)}
        for rank in range(case.ranks) if "device" in case.device_samples else ():
            name = f"cuda:{rank % case.key['devices_per_node']}"
            name = f"{case.node(rank)}/{name}" if case.key["nodes"] > 1 else name
            load = {"utilisation": 0.97, "power_watts": 600 + number + rank, "memory_bytes": 30 * GIB}
            heat = {"temperature_c": 50 + number, "clock_mhz": 1980 - number, "clock_max_mhz": 1980}
            yield {**times, "device": name, **load, **heat, **case.device_samples["device"]}
        yield {**times, "device": "cpu", "utilisation": 0.31, **case.device_samples.get("host", {})}
