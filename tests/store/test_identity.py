"""Every run and trial has a UUID; folders of earlier versions get one, the same each time, by migration."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pytest
from fabricated_runs import fabricate, record

from trainmark.store.files import StoreError, read_json, write_json
from trainmark.store.identity import (
    SCHEMA,
    events_digest,
    migrate,
    run_uuid,
    trial_identity,
    trial_uuid,
)
from trainmark.store.report import report_of
from trainmark.store.run import RunFolder, find_run
from trainmark.store.trial import finished_trials, read_spec

OLD_RUNS = json.loads(Path(__file__).with_name("runs_0_1_0.json").read_text(encoding="utf-8"))
RUN = "6f0f0f52-6f0e-4a50-8b8e-52e1d9d6a001"


@pytest.fixture
def old_runs(tmp_path) -> Path:
    """Runs of version 0.1.0: without UUIDs, and a training with names of that version."""
    for name, text in OLD_RUNS.items():
        (tmp_path / "runs" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "runs" / name).write_text(text, encoding="utf-8")
    return tmp_path / "runs"


def contents(run: RunFolder) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}


def identities(run: RunFolder) -> list[str]:
    folders = finished_trials(run.trials)
    return [trial_identity(folder, read_spec(folder), run_uuid(run.info)) for folder in folders]


def test_the_uuid_of_an_attempt_is_its_own():
    uuids = {
        trial_uuid(RUN, case, repeat, started)
        for case in ("a", "b")
        for repeat in (1, 2)
        for started in (1.0, 1.5)
    }
    assert len(uuids) == 8 and all(uuid.UUID(text).version == 5 for text in uuids)
    assert trial_uuid(RUN, "a", 1, 1.0) == trial_uuid(RUN, "a", 1, 1.0)


def test_an_old_trial_has_the_uuid_of_its_events_wherever_it_lies(old_runs, tmp_path):
    run = find_run("probe", old_runs)
    before = identities(run)
    assert len(set(before)) == 2
    run.path.rename(tmp_path / "elsewhere")
    assert identities(RunFolder(tmp_path / "elsewhere")) == before


def test_the_digest_is_of_names_and_contents(tmp_path):
    (tmp_path / "events").mkdir()
    assert events_digest(tmp_path) is None
    first = tmp_path / "events" / "rank0.jsonl"
    first.write_text("{}\n")
    one = events_digest(tmp_path)
    first.rename(tmp_path / "events" / "rank1.jsonl")
    assert one is not None and events_digest(tmp_path) not in (None, one)


def test_a_trial_without_events_has_a_uuid_too(tmp_path):
    run = fabricate(tmp_path, "a", {"1n1g": [None, None]})
    assert len(set(identities(run))) == 2


@pytest.mark.parametrize("name", ["probe", "finish"])
def test_a_migrated_run_gives_the_report_of_before(old_runs, name):
    run = find_run(name, old_runs)
    before = report_of(run)
    assert migrate(run) > 0
    after = report_of(find_run(name, old_runs))
    assert after.results == before.results and not find_run(name, old_runs).damaged


@pytest.mark.parametrize("name", ["probe", "finish"])
def test_a_migrated_run_has_the_uuids_that_it_had_before(old_runs, name):
    run = find_run(name, old_runs)
    before = run_uuid(run.info), identities(run)
    migrate(run)
    assert (run.info.uuid, [read_spec(folder).uuid for folder in finished_trials(run.trials)]) == before
    assert run.info.schema == SCHEMA


def test_a_migrated_trial_has_its_key_in_trial_json(old_runs):
    run = find_run("finish", old_runs)
    (before,) = run.records()
    assert before.spec.key is None
    migrate(run)
    (after,) = run.records()
    assert (after.spec.key, after.spec.started, after.spec.fingerprint) == (
        before.key,
        before.started,
        before.environment,
    )


def test_migrating_twice_changes_nothing(old_runs):
    run = find_run("finish", old_runs)
    migrate(run)
    before = contents(run)
    assert migrate(run) == 0 and contents(run) == before


def test_a_migration_that_was_cut_short_is_finished(old_runs):
    run = find_run("probe", old_runs)
    whole = identities(run)
    spec = run.trials / "softmax-b2048-1n1g" / "01" / "trial.json"
    before = spec.read_text()
    migrate(run)
    spec.write_text(before)
    assert migrate(run) == 1
    assert [read_spec(folder).uuid for folder in finished_trials(run.trials)] == whole


def test_what_a_newer_version_wrote_is_not_migrated(old_runs):
    run = find_run("probe", old_runs)
    path = run.trials / "softmax-b2048-1n1g" / "02" / "trial.json"
    write_json(path, {**read_json(path), "schema": SCHEMA + 1})
    before = contents(run)
    with pytest.raises(StoreError, match=rf"schema {SCHEMA + 1}, newer than {SCHEMA}; upgrade Trainmark"):
        migrate(run)
    assert contents(run) == before


def test_a_damaged_run_is_not_migrated_by_half(old_runs):
    run = find_run("probe", old_runs)
    (run.trials / "softmax-b2048-1n1g" / "02" / "figure.json").write_text("{")
    before = contents(run)
    with pytest.raises(StoreError, match=r"02/figure\.json is damaged"):
        migrate(run)
    assert contents(run) == before


def test_a_spec_without_a_uuid_reads_as_before(tmp_path):
    run = fabricate(tmp_path, "a", {"1n1g": [100.0]})
    (stored,) = run.records()
    assert stored == record("pytorch-fp32-b32-1n1g", 1, 100.0) and stored.spec.uuid is None
