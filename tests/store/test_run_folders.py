"""Runs: found by name, path or `latest`, and read as lists and frames."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from fabricated_runs import CREATED, fabricate, fabricate_program

import trainmark
from trainmark.store.files import StoreError
from trainmark.store.overview import overview
from trainmark.store.run import RunFolder, RunInfo, all_runs, find_run
from trainmark.store.trial import FIGURE


@pytest.fixture
def runs(tmp_path):
    fabricate(tmp_path, "older", created=CREATED)
    fabricate(tmp_path, "newer", {"1n1g": [100.0, None], "1n2g": [190.0, 191.0]}, created=CREATED + 60)
    return tmp_path


def test_what_a_run_says_of_itself_comes_back(tmp_path):
    run = fabricate(tmp_path, "a", skipped=[("big-case", "needs 8 CUDA devices")])
    info = run.info
    assert (info.name, info.suite, info.created, info.least) == ("a", "quick", CREATED, 3)
    assert info.skipped == (("big-case", "needs 8 CUDA devices"),)
    assert isinstance(info, RunInfo)


def test_the_facts_of_each_case_come_back_and_later_ones_join_them(tmp_path):
    run = fabricate(tmp_path, "a")
    assert run.facts == {}
    run.keep_facts({"one": {"framework_version": "1"}, "two": {"framework_version": "1"}})
    run.keep_facts({"two": {"framework_version": "2"}})
    assert run.facts == {"one": {"framework_version": "1"}, "two": {"framework_version": "2"}}


def test_latest_is_the_run_made_last_not_the_last_by_name(runs):
    assert find_run("latest", runs).path == runs / "newer"


def test_a_run_is_found_by_name_and_by_path(runs, monkeypatch):
    assert find_run("older", runs).path == runs / "older"
    assert find_run(str(runs / "older"), runs / "elsewhere").path == runs / "older"
    monkeypatch.chdir(runs)
    assert find_run("./newer", runs / "elsewhere").info.name == "newer"


def test_a_run_that_is_not_there_is_answered_with_those_that_are(runs):
    with pytest.raises(StoreError, match=r"^there is no run 'oldest' in .*; there are older, newer\.$"):
        find_run("oldest", runs)


def test_the_trial_that_explain_took_for_itself_is_not_the_latest_run(runs):
    line = "python train.py"
    fabricate_program(runs, "looked-into", line, [1.0], (), "trainmark explain", CREATED + 1e6)
    assert find_run("latest", runs).path == runs / "newer"


@pytest.mark.parametrize("name", ["latest", "older"])
def test_where_there_are_no_runs_at_all_it_says_so(tmp_path, name):
    with pytest.raises(StoreError, match=r"^there (are no runs in|is no run 'older' in) .*\.$"):
        find_run(name, tmp_path / "nowhere")


def test_folders_that_hold_no_run_are_passed_over(runs):
    (runs / "notes").mkdir()
    (runs / "index.duckdb").write_bytes(b"")
    assert [run.path.name for run in all_runs(runs)] == ["older", "newer"]


def test_a_folder_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    info = fabricate(tmp_path, "a").info
    with pytest.raises(
        StoreError, match=r"file/b cannot be written: Not a directory; choose another --runs\.$"
    ):
        RunFolder.create(tmp_path / "file" / "b", info, "")


def test_of_many_who_create_one_run_one_succeeds_and_nobody_removes_it(tmp_path):
    info = fabricate(tmp_path, "a").info
    for race in range(50):
        path, start = tmp_path / str(race), threading.Barrier(4)

        def create(path=path, start=start):
            start.wait()
            try:
                return RunFolder.create(path, info, "about: x")
            except StoreError as error:
                assert "exists; add --resume" in str(error) or "exists without run.json" in str(error)

        with ThreadPoolExecutor(4) as pool:
            winners = [run for run in pool.map(lambda _, create=create: create(), range(4)) if run]
        assert len(winners) == 1 and RunFolder(path).info == info


def test_two_harnesses_do_not_run_the_same_run(tmp_path):
    run = fabricate(tmp_path, "a")
    refused = pytest.raises(StoreError, match="is being run by another trainmark")
    with run.locked(), refused, RunFolder(run.path).locked():
        pass
    with run.locked():
        pass


def test_the_overview_counts_what_each_run_has(runs):
    (older, _), (newer, _) = overview(runs)
    assert (older["name"], older["status"], older["ok"], older["failed"]) == ("older", "finished", 3, 0)
    assert (newer["ok"], newer["failed"], newer["outcomes"]) == (3, 1, {"ok": 3, "crashed": 1})


def test_a_run_with_trials_to_come_is_partial(runs):
    (runs / "older" / "trials" / "pytorch-fp32-b32-1n1g" / "03").rename(runs / "away")
    assert overview(runs)[0][0]["status"] == "partial"


def test_a_run_with_a_damaged_trial_is_listed_as_damaged(runs):
    (runs / "older" / "trials" / "pytorch-fp32-b32-1n1g" / "02" / FIGURE).write_text("{")
    assert [row["status"] for row, _ in overview(runs)] == ["damaged", "finished"]


def test_a_run_loads_as_a_frame_with_a_row_a_trial(runs):
    frame = trainmark.load(runs / "newer")
    assert frame["throughput"].dropna().tolist() == [100.0, 190.0, 191.0]
    assert frame["outcome"].tolist() == ["ok", "crashed", "ok", "ok"]
    assert set(frame["run"]) == {"newer"}
    assert set(frame["doubts"]) == {"data-bound", ""}


def test_a_run_loads_by_name_and_as_latest(runs):
    assert len(trainmark.load("older", runs)) == 3
    assert set(trainmark.load(runs=runs)["run"]) == {"newer"}


def test_a_whole_folder_of_runs_loads_as_one_frame(runs):
    assert trainmark.load(runs)["run"].value_counts().to_dict() == {"newer": 4, "older": 3}


def test_loading_what_is_not_there_says_so(runs, tmp_path):
    with pytest.raises(StoreError, match="there is no run 'gone'"):
        trainmark.load("gone", runs)
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(StoreError, match="there is no run"):
        trainmark.load(empty, empty)


def test_the_package_has_no_other_names_at_its_top():
    with pytest.raises(AttributeError, match="has no attribute 'lode'"):
        _ = trainmark.lode
