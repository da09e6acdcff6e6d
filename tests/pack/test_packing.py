"""A run becomes one file, the same each time, and comes back as the run that it was."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path

import pytest
from measured_runs import CASE, TWO_RANKS, measured_run, members

import trainmark
from trainmark.store.archive import pack, unpack, verify
from trainmark.store.files import read_json, write_json
from trainmark.store.manifest import MANIFEST, PackError
from trainmark.store.report import report_of
from trainmark.store.run import RunFolder, find_run

OLD_RUNS = json.loads((Path(__file__).parents[1] / "store" / "runs_0_1_0.json").read_text(encoding="utf-8"))


@pytest.fixture
def old_runs(tmp_path) -> Path:
    """Two runs that version 0.1.0 wrote."""
    for name, text in OLD_RUNS.items():
        (tmp_path / "runs" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "runs" / name).write_text(text, encoding="utf-8")
    return tmp_path / "runs"


def test_the_manifest_lists_every_other_member(packed):
    names = list(members(packed.path))
    assert names[0] == MANIFEST
    assert names[1:] == [member.name for member in packed.manifest.members]
    assert {"suite.yaml", "environment.json", "facts.json", f"trials/{CASE}/01/events/rank0.jsonl"} <= set(
        names
    )


def test_packing_twice_gives_the_same_bytes(run, packed, tmp_path, monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 2e9)
    shutil.copytree(run.path, tmp_path / "elsewhere" / run.path.name)
    again = pack(RunFolder(tmp_path / "elsewhere" / run.path.name), tmp_path / "again")
    assert again.path.read_bytes() == packed.path.read_bytes()


def test_a_report_that_was_written_meanwhile_changes_nothing(run, packed, tmp_path):
    shutil.copytree(run.path, tmp_path / "copy")
    (tmp_path / "copy" / "report.html").write_text("<html>")
    assert pack(RunFolder(tmp_path / "copy"), tmp_path / "again").sha256 == packed.sha256


def test_the_folder_of_the_run_is_not_touched(tmp_path):
    run = measured_run(tmp_path)
    before = {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}
    pack(run, tmp_path / "out.trainmark")
    assert {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()} == before


def test_an_unpacked_run_gives_the_same_report(run, file, tmp_path):
    copy = unpack(file, tmp_path / "measured")
    assert report_of(copy).results == report_of(run).results
    assert [record.spec.uuid for record in copy.records()] == [record.spec.uuid for record in run.records()]


def test_an_unpacked_run_packs_to_the_same_bytes(file, tmp_path):
    again = pack(unpack(file, tmp_path / "measured"), tmp_path / "again.trainmark")
    assert again.path.read_bytes() == file.read_bytes()


def test_load_reads_a_packed_file(file):
    pytest.importorskip("pandas")
    frame = trainmark.load(file)
    assert sorted(frame[frame.outcome == "ok"].case) == [CASE, CASE, TWO_RANKS]


@pytest.mark.parametrize("name", ["probe", "finish"])
def test_a_run_of_version_0_1_0_packs_and_verifies(old_runs, tmp_path, name):
    packed = pack(find_run(name, old_runs), tmp_path / "old.trainmark")
    verification = verify(packed.path)
    assert verification.verified and all(trial.figure for trial in verification.trials)
    assert all(trial.uuid for trial in verification.trials) and verification.manifest.uuid


def test_a_run_of_version_0_1_0_has_the_same_uuids_each_time(old_runs, tmp_path):
    first, second = (pack(find_run("probe", old_runs), tmp_path / name).manifest for name in "ab")
    assert first.uuid == second.uuid
    assert [trial.uuid for trial in first.trials] == [trial.uuid for trial in second.trials]


def test_a_figure_that_does_not_follow_from_its_events_is_not_packed(tmp_path):
    run = measured_run(tmp_path)
    path = run.trials / CASE / "01" / "figure.json"
    plain = read_json(path)
    plain["figure"]["throughput"] *= 2
    write_json(path, plain)
    with pytest.raises(
        PackError, match=rf"{CASE}/01 cannot be packed: throughput of its figure.json is 1\d\d"
    ):
        pack(run, tmp_path / "out.trainmark")
    assert not (tmp_path / "out.trainmark").exists()
    assert pack(run, tmp_path / "out.trainmark", recompute=True).verification.verified


def test_a_damaged_trial_is_named(tmp_path):
    run = measured_run(tmp_path)
    (run.trials / CASE / "02" / "trial.json").write_text("{")
    with pytest.raises(ValueError, match=r"02/trial.json is damaged"):
        pack(run, tmp_path / "out.trainmark")


def test_a_link_out_of_the_folder_is_not_followed(tmp_path):
    run = measured_run(tmp_path)
    (tmp_path / "private").write_text("not for others")
    (run.trials / CASE / "01" / "logs" / "rank7.log").symlink_to(tmp_path / "private")
    names = members(pack(run, tmp_path / "out.trainmark").path)
    assert f"trials/{CASE}/01/logs/rank7.log" not in names


def test_a_file_that_cannot_be_written_is_one_sentence(run, tmp_path):
    with pytest.raises(PackError, match="cannot be written: No such file or directory"):
        pack(run, tmp_path / "no" / "folder" / "out.trainmark")


def test_an_earlier_file_stays_where_packing_fails(run, tmp_path):
    out = tmp_path / "out.trainmark"
    out.write_text("earlier")
    with pytest.raises(PackError, match="there is no key"):
        pack(run, out, key=tmp_path / "no-key")
    assert out.read_text() == "earlier" and list(tmp_path.iterdir()) == [out]
