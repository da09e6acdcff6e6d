"""Fabricated runs whose trials also have events, consistent with their figures."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from fabricated_runs import CREATED, fabricate, keep, record

from trainmark.events import Event, RunEnd, RunStart, Step, stream
from trainmark.pages.export.export import export
from trainmark.store.run import RunFolder
from trainmark.store.trial import TrialRecord

BATCH, STEPS, FIRST = 32, 120, 20
BOOTED = CREATED - 1000


def run_with_events(
    runs: Path, name: str, rates: Mapping[str, Sequence[float | None]] | None = None
) -> RunFolder:
    """As `fabricate`, and every trial with a figure has the events that give it."""
    run = fabricate(runs, name, rates)
    for trial_record in run.records():
        add_events(run.trial(trial_record.spec.case, trial_record.spec.repeat).done, trial_record)
    return run


def odd_run(runs: Path, name: str, throughput: float = 100.0, **key: object) -> RunFolder:
    """A run of one trial, its key changed."""
    run = fabricate(runs, name, {})
    trial_record = record("odd", 1, throughput)
    trial_record = replace(trial_record, key=replace(trial_record.key, **key))
    add_events(keep(run, trial_record), trial_record)
    return run


def add_events(folder: Path, trial_record: TrialRecord) -> None:
    if trial_record.figure is None:
        return
    (folder / "events").mkdir()
    document = json.loads((folder / "figure.json").read_text())
    document["figure"]["world_size"] = trial_record.key.devices
    (folder / "figure.json").write_text(json.dumps(document))
    for rank in range(trial_record.key.devices):
        stream.write(folder / "events" / f"rank{rank}.jsonl", events(trial_record, rank))


def events(trial_record: TrialRecord, rank: int) -> list[Event]:
    """Slow warm-up, then steps whose times sway but sum up to the figure; rank 0 ends each step last."""
    ranks = trial_record.key.devices
    usual = BATCH * ranks / trial_record.figure.throughput
    mono = trial_record.started - BOOTED + 2
    rank_events: list[Event] = [RunStart(rank, ranks, mono, mono + BOOTED, "images", facts={})]
    for step in range(STEPS):
        mono += usual * (3 if step < FIRST else 1.05 if step % 2 else 0.95)
        ended = mono - rank * 1e-4
        rank_events.append(
            Step(rank, step, ended, ended + BOOTED, BATCH, 7 - step / 100, 0.1, memory=(1 << 30) + rank)
        )
    return [*rank_events, RunEnd(rank, mono, mono + BOOTED)]


def exported(run: RunFolder, target: str, out: Path, submitter: str = "My Lab") -> Path:
    export(run, target, out, submitter)
    return out
