"""The index over all trials: always of today, never the truth."""

from __future__ import annotations

import json
import shutil
import sys

import pytest
from fabricated_runs import CREATED, fabricate, keep, record

from trainmark.store.files import StoreError
from trainmark.store.index import COLUMNS, INDEX, build, damaged, query
from trainmark.store.overview import trial_rows
from trainmark.store.run import find_run
from trainmark.workloads import registry

pytest.importorskip("duckdb")
COUNT = "SELECT count(*) FROM trials"
CASE = "pytorch-fp32-b32-1n1g"


@pytest.fixture
def runs(tmp_path):
    fabricate(tmp_path, "a", {"1n1g": [100.0, None], "1n2g": [190.0]})
    fabricate(tmp_path, "b", created=CREATED + 60)
    return tmp_path


def counted(runs) -> int:
    return query(runs, COUNT)[1][0][0]


def test_every_trial_of_every_run_is_a_row(runs):
    assert build(runs) == 6
    names, rows = query(runs, "SELECT run, repeat, throughput FROM trials WHERE run = 'a' ORDER BY ALL")
    assert names == ["run", "repeat", "throughput"]
    assert rows == [("a", 1, 100.0), ("a", 1, 190.0), ("a", 2, None)]


def test_the_columns_are_those_of_a_trials_row_with_their_values(runs):
    run = find_run("a", runs)
    (row,) = trial_rows(run, run.records()[:1])
    names, rows = query(runs, "SELECT * FROM trials WHERE run = 'a' AND devices_per_node = 1 AND repeat = 1")
    best = {f"best_{metric}" for metric in registry.metrics()}
    assert set(names) == {*COLUMNS, *registry.axes(), *best}
    empty = dict.fromkeys({*registry.axes(), *best})
    assert dict(zip(names, rows[0], strict=True)) == {**empty, **row}


def test_it_is_made_when_it_is_first_asked(runs):
    assert not (runs / INDEX).exists()
    assert counted(runs) == 6
    assert (runs / INDEX).is_file()


def test_it_is_not_made_again_while_nothing_has_changed(runs):
    counted(runs)
    before = (runs / INDEX).stat().st_ino
    assert counted(runs) == 6
    assert (runs / INDEX).stat().st_ino == before


def test_a_new_trial_is_seen(runs):
    counted(runs)
    keep(find_run("b", runs), record(CASE, 9, 1.0))
    assert counted(runs) == 7


def test_a_new_run_and_a_removed_one_are_seen(runs):
    counted(runs)
    fabricate(runs, "c")
    assert counted(runs) == 9
    shutil.rmtree(runs / "a")
    assert counted(runs) == 6


def test_a_trial_set_aside_is_seen(runs):
    counted(runs)
    place = find_run("a", runs).trial(CASE, 2)
    place.set_aside(place.done, "crashed")
    assert counted(runs) == 5


@pytest.mark.parametrize("damage", [None, b"", b"not a database at all"])
def test_an_index_that_is_lost_or_broken_is_made_again(runs, damage):
    counted(runs)
    (runs / INDEX).unlink() if damage is None else (runs / INDEX).write_bytes(damage)
    assert counted(runs) == 6


def test_nothing_but_the_index_is_left_behind(runs):
    counted(runs)
    assert sorted(path.name for path in runs.iterdir()) == ["a", "b", INDEX]


def test_a_folder_without_runs_has_no_rows(tmp_path):
    assert counted(tmp_path) == 0


@pytest.mark.parametrize(
    "sql",
    [
        "",
        "-- nothing but a remark",
        "SELEC 1",
        "SELECT nothing FROM trials",
        "DELETE FROM trials",
        "DROP TABLE trials",
        "CREATE TABLE mine AS SELECT 1",
        "COPY trials TO '{out}/copy.csv'",
        "ATTACH '{out}/other.duckdb'",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SET enable_external_access = true",
    ],
)
def test_a_query_that_is_wrong_or_would_change_something_is_refused_in_one_line(runs, sql):
    counted(runs)
    there = sorted(runs.iterdir())
    with pytest.raises(StoreError, match=r"^the query was refused: .*[^.]\.$") as refused:
        query(runs, sql.format(out=runs))
    assert "\n" not in str(refused.value)
    assert sorted(runs.iterdir()) == there
    assert counted(runs) == 6


def test_a_damaged_trial_is_named_and_the_others_are_there(runs):
    before = counted(runs)
    (runs / "a" / "trials" / CASE / "01" / "figure.json").write_text("{")
    build(runs)
    assert counted(runs) == before - 1
    ((run, sentence),) = damaged(runs)
    assert run == "a" and "1n1g/01/figure.json is damaged" in sentence


def test_where_there_is_no_folder_of_runs_it_says_how_to_make_one(tmp_path):
    with pytest.raises(StoreError, match="make one with `trainmark run quick`"):
        query(tmp_path / "nowhere", COUNT)


def test_a_query_with_a_time_needs_no_pytz(runs, monkeypatch):
    monkeypatch.setitem(sys.modules, "pytz", None)
    sql = (
        "SELECT run, to_timestamp(created) AS at, [to_timestamp(created)] AS at FROM trials ORDER BY created"
    )
    names, rows = query(runs, f"SET TimeZone = 'UTC'; {sql}")
    assert names == ["run", "at", "at"]
    assert rows[0] == ("a", "2025-10-09 08:53:20+00", "['2025-10-09 08:53:20+00']")
    assert [row[0] for row in rows] == ["a"] * 3 + ["b"] * 3


def test_the_commit_of_the_folder_that_a_trial_was_started_in_is_a_column(runs):
    path = runs / "a" / "trials" / CASE / "01" / "environment.json"
    path.write_text(json.dumps({"git": {"commit": "c0ffee", "branch": "main", "dirty": False}}))
    _, rows = query(runs, "SELECT commit FROM trials WHERE run = 'a' ORDER BY commit")
    assert rows == [("c0ffee",), (None,), (None,)]
