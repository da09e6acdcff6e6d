"""One folder a trial: whole or not there, and nothing that was tried is lost."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from fabricated_runs import ENVIRONMENT, fabricate, figure, keep, record

from trainmark.store.files import StoreError, read_json, write_json, write_text
from trainmark.store.trial import FIGURE, SPEC, finished_trials, read_trial

CASE = "pytorch-fp32-b32-1n1g"


@pytest.fixture
def run(tmp_path):
    return fabricate(tmp_path, "a", {})


@pytest.mark.parametrize("rate", [123.25, None])
def test_a_record_comes_back_as_it_was_kept(run, rate):
    kept = record(CASE, 3, rate)
    assert read_trial(keep(run, kept)) == kept


def test_a_figure_with_a_loss_that_is_no_number_comes_back(run):
    kept = replace(record(CASE, 1, 1.0), figure=replace(figure(1.0), loss_last=math.nan))
    assert math.isnan(read_trial(keep(run, kept)).figure.loss_last)


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
    for case, repeat in [("b", 1), ("a", 100), ("a", 11), ("a", 2)]:
        keep(run, record(case, repeat, 1.0))
    assert [(found.spec.case, found.spec.repeat) for found in run.records()] == [
        ("a", 2),
        ("a", 11),
        ("a", 100),
        ("b", 1),
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
    kept = [folder for folder in (run.trials / CASE).iterdir() if (folder / SPEC).exists()]
    assert sorted(folder.name for folder in kept) == ["01.crashed-1", "01.crashed-3"]


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[]",
        b"null",
        b"{}",
        b"[" * 100_000,
        b'{"figure": null, "key": 5, "retries": []}',
    ],
    ids=lambda damage: ascii(damage)[:20],
)
@pytest.mark.parametrize("file", [SPEC, FIGURE])
def test_a_damaged_trial_is_refused_with_its_place_and_what_to_do(run, file, damage):
    folder = keep(run, record(CASE, 1, 1.0))
    (folder / file).write_bytes(damage)
    with pytest.raises(StoreError) as refused:
        read_trial(folder)
    said = str(refused.value)
    assert str(folder) in said
    assert said.endswith("move its folder away, and `trainmark run --resume` measures it again.")
    assert "\n" not in said


def test_a_figure_with_a_verdict_of_another_version_is_refused(run):
    folder = keep(run, record(CASE, 1, 1.0))
    found = json.loads((folder / FIGURE).read_text())
    found["figure"]["window"]["verdict"] = "wobbly"
    (folder / FIGURE).write_text(json.dumps(found))
    with pytest.raises(StoreError, match="does not hold a trial of this version"):
        read_trial(folder)


def test_a_missing_figure_is_refused(run):
    folder = keep(run, record(CASE, 1, 1.0))
    (folder / FIGURE).unlink()
    with pytest.raises(StoreError, match=r"figure.json is missing; move its folder away"):
        read_trial(folder)


def test_a_file_is_replaced_whole_or_left_as_it_was(tmp_path):
    file = tmp_path / "report.md"
    write_text(file, "old")
    with pytest.raises(UnicodeEncodeError):
        write_text(file, "new \ud800")
    assert file.read_text() == "old"
    write_text(file, "new")
    assert file.read_text() == "new"


def test_json_keeps_what_it_was_given(tmp_path):
    value = {"名": [1, 2.5, None, True, "\n"]}
    write_json(tmp_path / "x.json", value)
    assert read_json(tmp_path / "x.json") == value
