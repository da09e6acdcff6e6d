"""Packed runs whose figures follow from their events, of chosen rates, machines and texts."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from trainmark import __version__
from trainmark.events import RunEnd, RunStart, Step, stream
from trainmark.measure.key import Key
from trainmark.store.archive import pack
from trainmark.store.identity import SCHEMA, trial_uuid
from trainmark.store.recompute import figure_of_folder
from trainmark.store.run import RunFolder, RunInfo
from trainmark.store.trial import TrialRecord, TrialSpec

CREATED = 1_754_000_000.0
DAY = 86_400.0
STEPS, WARMUP_STEPS, BATCH = 60, 10, 8


@dataclass(frozen=True)
class MadeRun:
    """`rates` are the throughputs of the trials; `text` stands in every field that a user can write."""

    name: str = "nightly-1"
    rates: Sequence[float] = (80.0, 81.0, 80.5)
    day: float = 0.0
    suite: str = "nightly"
    host: str = "bench-1"
    version: str = "2.9.1"
    commit: str = "a" * 40
    text: str = ""
    key: Key = field(
        default=Key("softmax", "pytorch", precision="fp32", batch_per_device=BATCH, device="Xeon")
    )

    @property
    def uuid(self) -> str:
        return str(uuid.uuid5(uuid.NAMESPACE_URL, repr(self)))


def environment_of(made: MadeRun) -> dict[str, Any]:
    return {
        "host": {"hostname": made.host + made.text, "kernel": "Linux 6.1.0", "cpu": {"model": "Xeon"}},
        "devices": {"driver": "550.54.14" + made.text, "gpus": []},
        "software": {"python": "3.11.7", "packages": {"numpy": "2.1.0" + made.text}},
        "git": {"commit": made.commit, "branch": "main" + made.text, "dirty": False},
    }


def packed(folder: Path, made: MadeRun) -> Path:
    """Write the run below `folder` and return its packed file."""
    file = folder / f"{made.uuid}.trainmark"
    return pack(write_run(folder / "runs" / made.uuid, made), file).path


def write_run(path: Path, made: MadeRun) -> RunFolder:
    created, text, count = CREATED + made.day * DAY, made.text, len(made.rates)
    info = RunInfo(
        name=made.name + text,
        suite=made.suite + text,
        about=f"made {text}",
        created=created,
        version=__version__,
        command=f"trainmark run {text}",
        least=count,
        most=count,
        skipped=(("other", f"no room {text}"),),
        uuid=made.uuid,
        schema=SCHEMA,
    )
    run = RunFolder.create(path, info, f"name: made # {text}\n")
    run.keep_environment(environment_of(made))
    run.keep_facts({"softmax-b8": {"framework_version": made.version, "cudnn": "9" + text}})
    for repeat, rate in enumerate(made.rates, 1):
        _write_trial(run, made, repeat, rate)
    run.mark_ended(created + 3600)
    return run


def _write_trial(run: RunFolder, made: MadeRun, repeat: int, rate: float) -> None:
    case, started, values = "softmax-b8", run.info.created + 60 * repeat, made.key
    key = Key(**{**vars(values), "framework_version": made.version})
    spec = TrialSpec(
        case=case,
        repeat=repeat,
        command=f"python train.py {made.text}",
        environment={"OMP_NUM_THREADS": "1" + made.text},
        steps=STEPS,
        warmup_steps=WARMUP_STEPS,
        key=key,
        started=started,
        fingerprint="0123456789abcdef",
        uuid=trial_uuid(made.uuid, case, repeat, started),
        schema=SCHEMA,
    )
    place = run.trial(case, repeat)
    part = place.begin(spec, environment_of(made))
    (part / "events").mkdir()
    facts: Mapping[str, Any] = {"framework": "pytorch", "note": made.text}
    stream.write(part / "events" / "rank0.jsonl", _events(started, rate, facts, f"{made.uuid}{repeat}"))
    figure = figure_of_folder(part, key, WARMUP_STEPS)
    detail = made.text
    place.finish(TrialRecord(spec, key, "ok", detail, None, (), started, 30.0, "0123456789abcdef", figure))


def _events(
    started: float, rate: float, facts: Mapping[str, Any], seed: str
) -> list[RunStart | Step | RunEnd]:
    random, end = Random(seed), 0.5
    events: list[RunStart | Step | RunEnd] = [RunStart(0, 1, 100.0, started, "rows", facts=dict(facts))]
    for number in range(STEPS):
        end += BATCH / rate * random.uniform(0.999, 1.001)
        events.append(Step(0, number, 100 + end, started + end, BATCH, loss=2.0 / (number + 1)))
    return [*events, RunEnd(0, 100 + end + 0.1, started + end + 0.1)]
