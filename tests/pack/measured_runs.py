"""Runs whose figures follow from their events, written through the store; packed files, changed by hand."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from trainmark import __version__
from trainmark.events import DeviceSample, RunEnd, RunStart, Step, stream
from trainmark.measure.key import Key
from trainmark.store.identity import SCHEMA, new_uuid, trial_uuid
from trainmark.store.manifest import MANIFEST, MemberDigest, decode_manifest, encode_manifest
from trainmark.store.recompute import figure_of_folder
from trainmark.store.run import RunFolder, RunInfo
from trainmark.store.trial import TrialRecord, TrialSpec
from trainmark.store.unpack import unpack_unchecked
from trainmark.store.verify import trial_digests

CASE, TWO_RANKS = "softmax-b8-1n1g", "softmax-b8-1n2g"
CREATED = 1_754_900_000.0
SUITE = "name: softmax\nworkload: {name: softmax, command: 'python train.py'}\nbatch_per_device: 8\n"
ENVIRONMENT = {"host": {"hostname": "node1", "system": "Linux"}, "devices": {"gpus": []}}
FINGERPRINT = "0123456789abcdef"
STEPS, WARMUP_STEPS = 120, 20


def measured_run(
    runs: Path,
    name: str = "measured",
    rates: Mapping[str, Sequence[float]] | None = None,
    created: float = CREATED,
    facts: Mapping[str, Any] | None = None,
    log: str = "",
) -> RunFolder:
    """Write a run with one trial for each rate (samples/s) of each case, and one that crashed."""
    rates = {CASE: (80.0, 81.0), TWO_RANKS: (150.0,)} if rates is None else rates
    planned = sum(map(len, rates.values())) + 1
    info = RunInfo(
        name=name,
        suite="softmax",
        about="Made for a test.",
        created=created,
        version=__version__,
        command="trainmark run softmax.yaml",
        least=planned,
        most=planned,
        skipped=(("softmax-b8-1n8g", "this machine has 2 processors"),),
        uuid=new_uuid(),
        schema=SCHEMA,
    )
    run = RunFolder.create(runs / name, info, SUITE)
    run.keep_environment(ENVIRONMENT)
    run.keep_facts({case: {"framework_version": "1.0"} for case in rates})
    for case, case_rates in rates.items():
        for repeat, rate in enumerate(case_rates, 1):
            measured_trial(run, case, repeat, rate, facts or {}, log)
    crashed_trial(run, next(iter(rates)), len(next(iter(rates.values()))) + 1)
    run.mark_ended(created + 3600)
    return run


def spec_for(run: RunFolder, case: str, repeat: int) -> TrialSpec:
    started, ranks = run.info.created + 60 * repeat, 2 if case.endswith("2g") else 1
    return TrialSpec(
        case=case,
        repeat=repeat,
        command="OMP_NUM_THREADS=1 python train.py",
        environment={"OMP_NUM_THREADS": "1"},
        steps=STEPS,
        warmup_steps=WARMUP_STEPS,
        key=Key(
            "softmax",
            "pytorch",
            "1.0",
            batch_per_device=8,
            devices_per_node=ranks,
            device="cpu",
            precision="fp32",
        ),
        started=started,
        fingerprint=FINGERPRINT,
        uuid=trial_uuid(run.info.uuid or "", case, repeat, started),
        schema=SCHEMA,
    )


def measured_trial(
    run: RunFolder, case: str, repeat: int, rate: float, facts: Mapping[str, Any], log: str
) -> Path:
    spec = spec_for(run, case, repeat)
    assert spec.key is not None and spec.started is not None
    place, ranks, random = run.trial(case, repeat), spec.key.devices_per_node, Random(f"{case}/{repeat}")
    part = place.begin(spec, ENVIRONMENT)
    (part / "events").mkdir()
    (part / "logs").mkdir()
    ends = [0.5]
    for _ in range(STEPS):
        ends.append(ends[-1] + 8 * ranks / rate * random.uniform(0.98, 1.02))
    for rank in range(ranks):
        start = RunStart(rank, ranks, 100.0, spec.started, "rows", facts={"framework": "pytorch", **facts})
        steps = [
            Step(rank, number, 100 + end, spec.started + end, 8, loss=2.0 / (number + 1))
            for number, end in enumerate(ends[1:])
        ]
        end = RunEnd(rank, 100 + ends[-1] + 0.1, spec.started + ends[-1] + 0.1)
        stream.write(part / "events" / f"rank{rank}.jsonl", [start, *steps, end])
        (part / "logs" / f"rank{rank}.log").write_text(f"rank {rank} trains\n{log}", encoding="utf-8")
    samples = [
        DeviceSample("cpu", 100 + second, spec.started + second, 0.5, power_watts=50.0) for second in range(9)
    ]
    stream.write(part / "samples.jsonl", samples)
    figure = figure_of_folder(part, spec.key, WARMUP_STEPS)
    record = TrialRecord(
        spec, spec.key, "ok", "", None, (), spec.started, 30.0, spec.fingerprint or "", figure
    )
    place.finish(record)
    return place.done


def crashed_trial(run: RunFolder, case: str, repeat: int) -> Path:
    spec = spec_for(run, case, repeat)
    assert spec.key is not None and spec.started is not None
    place = run.trial(case, repeat)
    part = place.begin(spec, ENVIRONMENT)
    (part / "logs").mkdir()
    (part / "logs" / "rank0.log").write_text("ValueError: no luck\n")
    place.finish(
        TrialRecord(
            spec,
            spec.key,
            "crashed",
            "rank 0 left with code 1",
            0,
            (),
            spec.started,
            2.0,
            "0123456789abcdef",
            None,
        )
    )
    return place.done


def members(file: Path) -> dict[str, bytes]:
    """Return the members of a packed file as tar itself reads them."""
    with tarfile.open(file) as archive:
        return {info.name: archive.extractfile(info).read() for info in archive.getmembers()}  # type: ignore[union-attr]


def repacked(file: Path, contents: Mapping[str, bytes]) -> Path:
    """Write these members as a packed file, whatever the manifest says of them."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in contents.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    file.write_bytes(gzip.compress(out.getvalue(), mtime=0))
    return file


def edited(contents: dict[str, bytes], member: str, *path: Any, value: Any) -> dict[str, bytes]:
    """Return the members with one value of one JSON file set."""
    plain = json.loads(contents[member])
    inner = plain
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = value
    return {**contents, member: json.dumps(plain).encode()}


def forged(file: Path, folder: Path) -> Path:
    """Mend all digests of a changed file, as somebody who knows the format would."""
    unpacked = unpack_unchecked(file, folder)
    contents = members(file)
    digests: dict[str, MemberDigest] = dict(unpacked.digests)
    manifest = decode_manifest(contents[MANIFEST])
    of_trials = trial_digests(digests)
    mended = replace(
        manifest,
        members=tuple(digests.values()),
        trials=tuple(replace(trial, digest=of_trials[trial.name]) for trial in manifest.trials),
    )
    return repacked(file, {**contents, MANIFEST: encode_manifest(mended)})
