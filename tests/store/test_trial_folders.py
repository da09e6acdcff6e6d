"""One folder a trial: whole or not there, and nothing that was tried is lost."""

from __future__ import annotations

import json
import math
import os
from dataclasses import replace
from pathlib import Path

import pytest
from fabricated_runs import ENVIRONMENT, fabricate, figure, keep, record

from trainmark.base.files import whole_file, write_text
from trainmark.store.files import StoreError, read_json, write_json
from trainmark.store.trial import FIGURE, SPEC, finished_trials, read_record, read_spec

CASE = "pytorch-fp32-b32-1n1g"


def read_trial(folder):
    return read_record(folder, read_spec(folder))


@pytest.fixture
def run(tmp_path):
    return fabricate(tmp_path, "a", {})


@pytest.mark.parametrize("rate", [123.25, None])
def test_a_record_comes_back_as_it_was_kept(run, rate):
    trial_record = record(CASE, 3, rate)
    assert read_trial(keep(run, trial_record)) == trial_record


def test_a_figure_with_a_loss_that_is_no_number_comes_back(run):
    trial_record = replace(record(CASE, 1, 1.0), figure=replace(figure(1.0), loss_last=math.nan))
    assert math.isnan(read_trial(keep(run, trial_record)).figure.loss_last)


def test_a_trial_that_still_runs_is_not_listed(run):
    place = run.trial(CASE, 1)
    part = place.begin(record(CASE, 1, 1.0).spec, ENVIRONMENT)
    write_json(part / FIGURE, {"half": "written"})
    assert part.is_dir()
    assert list(finished_trials(run.trials)) == []
    assert list(run.records()) == []


def test_a_finished_trial_is_listed_under_its_number_and_leaves_no_part(run):
    keep(run, record(CASE, 7, 1.0))
    assert [folder.name for folder in (run.trials / CASE).iterdir()] == ["07"]


def test_trials_are_listed_by_case_and_then_by_number_also_beyond_99(run):
    for case, repeat in [("b1024", 1), ("b64", 100), ("b64", 11), ("b64", 2)]:
        keep(run, record(case, repeat, 1.0))
    assert [(record.spec.case, record.spec.repeat) for record in run.records()] == [
        ("b64", 2),
        ("b64", 11),
        ("b64", 100),
        ("b1024", 1),
    ]


def test_what_was_set_aside_is_numbered_and_not_listed(run):
    place = run.trial(CASE, 1)
    for _ in range(3):
        place.begin(record(CASE, 1, 1.0).spec, ENVIRONMENT)
        place.set_aside(place.part, "crashed")
    place.begin(record(CASE, 1, 1.0).spec, ENVIRONMENT)
    place.set_aside(place.part, "hung")
    assert sorted(folder.name for folder in (run.trials / CASE).iterdir()) == [
        "01.crashed-1",
        "01.crashed-2",
        "01.crashed-3",
        "01.hung-1",
    ]
    assert list(finished_trials(run.trials)) == []


def test_setting_aside_never_lands_on_what_is_there_already(run):
    place = run.trial(CASE, 1)
    (run.trials / CASE / "01.crashed-2").mkdir(parents=True)
    for _ in range(2):
        place.begin(record(CASE, 1, 1.0).spec, ENVIRONMENT)
        place.set_aside(place.part, "crashed")
    folders = [folder for folder in (run.trials / CASE).iterdir() if (folder / SPEC).exists()]
    assert sorted(folder.name for folder in folders) == ["01.crashed-1", "01.crashed-3"]


def test_an_axis_that_no_workload_here_declares_still_tells_cases_apart(run):
    folder = keep(run, record(CASE, 1, 1.0))
    stored = json.loads((folder / FIGURE).read_text())
    stored["key"]["sequence_length"] = 1024
    (folder / FIGURE).write_text(json.dumps(stored))
    key = read_trial(folder).key
    assert key.value("sequence_length") == 1024 and key != record(CASE, 1, 1.0).key
    stored["key"]["sequence_length"] = [1024]
    (folder / FIGURE).write_text(json.dumps(stored))
    with pytest.raises(StoreError, match=r"'key.axes.sequence_length' must be a finite number, not \[1024\]"):
        read_trial(folder)


def test_a_trial_written_by_version_0_1_0_is_read(run):
    """It had no key, start and fingerprint in its spec."""
    folder = keep(run, trial_record := record(CASE, 1, 1.0))
    spec = json.loads((folder / SPEC).read_text())
    (folder / SPEC).write_text(json.dumps({name: spec[name] for name in list(spec)[:6]}))
    assert read_trial(folder) == trial_record


def test_a_file_is_replaced_whole_or_left_as_it_was(tmp_path):
    file = tmp_path / "report.md"
    write_text(file, "old")
    with pytest.raises(ZeroDivisionError), whole_file(file) as half:
        half.write(b"half")
        raise ZeroDivisionError
    assert file.read_text() == "old"
    write_text(file, "new")
    assert [path.name for path in tmp_path.iterdir()] == ["report.md"] and file.read_text() == "new"


def test_a_device_or_a_pipe_is_written_to_and_stays_what_it_is(tmp_path):
    read_end, write_end = os.pipe()
    try:
        write_text(Path(f"/dev/fd/{write_end}"), "through")
        assert os.read(read_end, 99) == b"through"
    finally:
        os.close(read_end)
        os.close(write_end)
    os.mkfifo(fifo := tmp_path / "fifo")
    with pytest.raises(OSError, match="No such device or address"):  # nobody reads from it
        write_text(fifo, "lost")
    (tmp_path / "link").symlink_to(fifo)
    with pytest.raises(OSError, match="No such device or address"):
        write_text(tmp_path / "link", "lost")
    assert fifo.is_fifo() and (tmp_path / "link").is_symlink()


def test_json_keeps_what_it_was_given(tmp_path):
    value = {"名": [1, 2.5, None, True, "\n", "half a pair: \ud800"]}
    write_json(tmp_path / "x.json", value)
    assert read_json(tmp_path / "x.json") == value
