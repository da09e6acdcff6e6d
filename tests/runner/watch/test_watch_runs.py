"""Two runs of a real program, measured again in turns until the difference is certain."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from sleeper import CASE, call, write

from trainmark.runner.watch_sides import SideSpec, WatchFolder, variables_of

COUNTER = Path(__file__).parents[2] / "cli" / "counter"
COUNTING = """
workload: ./counter
framework: plain
precision: fp32
device: cpu
batch_per_device: 32
repeats: 1
warmup: {steps: 2}
measure: {steps: 20}
"""


def test_a_slower_commit_is_confirmed_with_exit_code_1(watched):
    assert watched.finish.returncode == 1, watched.finish.stderr
    assert f"{CASE} is slower by more than 5 %" in watched.finish.stdout


def test_the_interval_is_where_the_ratio_of_the_two_commits_is(watched, program):
    """Within 2 %: one interval in twenty misses by design; tests/sequential simulates how many do."""
    hook = json.loads((program / "w.json").read_text())
    assert hook["low"] * 0.98 < 0.008 / 0.0104 < hook["high"] * 1.02


def test_the_hook_file_asks_for_an_alert_and_names_the_commits(watched, program):
    hook = json.loads((program / "w.json").read_text())
    assert (hook["status"], hook["alert"]) == ("regression", True)
    assert hook["text"] in watched.finish.stdout
    assert any(fact["name"] == "commit" and fact["remade"] for fact in hook["differences"])


def test_junit_has_one_failure_for_the_case(watched, program):
    (case,) = ElementTree.parse(program / "w.xml").iter("testcase")
    assert case.get("name") == CASE
    assert case.find("failure").get("type") == "regression"


def test_pairs_that_were_complete_before_a_kill_are_not_measured_again(watched):
    pair = {path for path in watched.before_kill if path.name == "01"}
    assert len(pair) == 2
    finished = max((path / "figure.json").stat().st_mtime for path in pair)
    later = WatchFolder(watched.folder).pairs()[1]
    assert finished <= min(later.before.started, later.after.started)


def test_a_half_pair_of_before_a_kill_is_set_aside(watched):
    halves = {path for path in watched.before_kill if path.name != "01"}
    redone = [path.with_name(f"{path.name}.unpaired-1").is_dir() for path in halves]
    assert len(halves) % 2 == 0 or any(redone)


def test_both_sides_have_equally_many_trials_side_by_side(watched):
    pairs = WatchFolder(watched.folder).pairs()
    assert [pair.number for pair in pairs] == list(range(1, len(pairs) + 1))
    gaps = [abs(pair.before.started - pair.after.started) for pair in pairs]
    assert max(gaps) < 60


def test_the_order_within_a_pair_changes(watched):
    pairs = WatchFolder(watched.folder).pairs()
    assert {pair.before.started < pair.after.started for pair in pairs} == {True, False}


def test_the_folder_being_worked_on_is_as_it_was(watched, program):
    assert "0.0104" in (program / "train.py").read_text()


def test_a_finished_watch_gives_its_verdict_again_without_a_trial(watched, program):
    count = len(WatchFolder(watched.folder).pairs())
    assert call(program, "watch", "--resume", "--name", "watched").returncode == 1
    assert len(WatchFolder(watched.folder).pairs()) == count


def test_two_runs_that_differ_in_nothing_are_undecided_without_a_trial(program):
    result = call(program, "watch", "before", "again", "--name", "nothing")
    assert result.returncode == 3
    assert "compare this machine with itself" in result.stdout
    assert not (program / "runs" / "nothing").exists()


def test_a_variable_of_a_run_is_put_back_and_what_is_below_the_limit_is_no_alert(program):
    result = call(program, "watch", "before", "threads", "--matters", "40%", "--name", "same", "--json")
    hook = json.loads(result.stdout)
    assert (result.returncode, hook["status"], hook["alert"]) == (0, "same", False), result.stderr
    after = (program / "runs" / "same" / "after" / "environment.json").read_text()
    before = (program / "runs" / "same" / "before" / "environment.json").read_text()
    assert "OMP_NUM_THREADS" in after
    assert "OMP_NUM_THREADS" not in before


def test_what_the_limit_of_pairs_leaves_open_is_undecided(program):
    result = call(program, "watch", "before", "threads", "--most-pairs", "1", "--name", "short")
    assert result.returncode == 3
    assert "1 pair was not enough" in result.stdout
    longer = call(program, "watch", "--resume", "--name", "short", "--most-pairs", "2", "--json")
    assert json.loads(longer.stdout)["pairs"] == 2


def test_a_side_runs_in_the_interpreter_that_is_named_for_it(program, tmp_path):
    named = tmp_path / "other-python"
    named.symlink_to(sys.executable)
    words = ("--python-b", str(named), "--most-pairs", "1", "--name", "interpreters")
    assert call(program, "watch", "before", "again", *words).returncode == 3
    (pair,) = WatchFolder(program / "runs" / "interpreters").pairs()
    assert [str(named) in record.spec.command for record in (pair.before, pair.after)] == [False, True]


def test_a_framework_whose_version_is_no_longer_installed_is_refused(tmp_path):
    shutil.copytree(COUNTER, tmp_path / "counter", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "suite.yaml").write_text(COUNTING)
    call(tmp_path, "run", "suite.yaml", "--name", "now")
    old = shutil.copytree(tmp_path / "runs" / "now", tmp_path / "runs" / "old")
    for name in ("trial.json", "figure.json"):
        (file,) = old.glob(f"trials/*/01/{name}")
        content = json.loads(file.read_text())
        content["key"]["framework_version"] = "0.9"
        file.write_text(json.dumps(content))
    result = call(tmp_path, "watch", "old", "now", "--name", "w")
    assert result.returncode == 2
    assert "old was measured with plain 0.9" in result.stderr
    assert "--python-a" in result.stderr
    assert not (tmp_path / "runs" / "w").exists()


def test_a_side_that_only_fails_is_given_up(tmp_path):
    write(tmp_path, 0.002)
    for name, threads in (("a", "1"), ("b", "2")):
        call(tmp_path, "run", "suite.yaml", "--name", name, "--repeats", "1", OMP_NUM_THREADS=threads)
    (tmp_path / "train.py").unlink()
    result = call(tmp_path, "watch", "a", "b", "--name", "w", "--hook-file", "w.json")
    assert result.returncode == 3
    assert "2 of 2 pairs failed" in json.loads((tmp_path / "w.json").read_text())["text"]


def test_a_commit_that_is_gone_is_named(program, tmp_path):
    runs = shutil.copytree(program / "runs", tmp_path / "runs")
    for file in (runs / "before").rglob("environment.json"):
        environment = json.loads(file.read_text())
        environment["git"]["commit"] = "0" * 40
        file.write_text(json.dumps(environment))
    names = {path.name for path in runs.iterdir()}
    result = call(program, "watch", "before", "after", "--runs", str(runs))
    assert (result.returncode, {path.name for path in runs.iterdir()}) == (2, names)
    assert "does not have commit 000000000000 of before" in result.stderr


@pytest.mark.parametrize("today", ["", "4"])
def test_variables_are_those_of_the_run_within_and_those_of_today_after(monkeypatch, today):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    if today:
        monkeypatch.setenv("MKL_NUM_THREADS", today)
    with variables_of(SideSpec("run", CASE, variables={"KMP_BLOCKTIME": "0"})):
        assert "OMP_NUM_THREADS" not in os.environ
        assert os.environ["KMP_BLOCKTIME"] == "0"
    assert os.environ["OMP_NUM_THREADS"] == "3"
    assert "KMP_BLOCKTIME" not in os.environ
