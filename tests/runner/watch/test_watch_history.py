"""Without arguments: the latest change of level that the history suspects."""

from __future__ import annotations

import json
import random
import shutil

import pytest
from sleeper import CASE, call

START, DAY = 1_750_000_000, 86_400


@pytest.fixture(scope="module")
def dated(program, tmp_path_factory):
    """Eight days of the first commit, eight of the second: real runs, copied with other dates and noise."""
    runs = tmp_path_factory.mktemp("history") / "runs"
    rng = random.Random(1)
    for day in range(16):
        origin = program / "runs" / ("before" if day < 8 else "after")
        copy = shutil.copytree(origin, runs / f"day{day:02d}")
        edit(copy / "run.json", created=START + day * DAY, name=copy.name)
        for trial in (copy / "trials" / CASE).iterdir():
            figure = json.loads((trial / "figure.json").read_text())
            level = 1200.0 if day < 8 else 920.0
            figure["figure"]["throughput"] = level * (1 + rng.gauss(0, 0.003))
            edit(trial / "figure.json", started=START + day * DAY, figure=figure["figure"])
            edit(trial / "trial.json", started=START + day * DAY)
    return runs


def edit(path, **changed):
    path.write_text(json.dumps({**json.loads(path.read_text()), **changed}))


def test_the_neighbours_of_the_latest_change_are_measured_again(program, dated):
    result = call(program, "watch", "--runs", str(dated), "--most-pairs", "1", "--name", "w", "--json")
    hook = json.loads(result.stdout)
    assert (hook["before"]["run"], hook["after"]["run"], hook["case"]) == ("day07", "day08", CASE)
    assert "commit" in {fact["name"] for fact in hook["differences"]}


def test_a_level_history_needs_no_trial_and_no_alert(program, dated, tmp_path):
    for day in range(8):
        shutil.copytree(dated / f"day{day:02d}", tmp_path / "runs" / f"day{day:02d}")
    result = call(tmp_path, "watch", "--hook-file", "hook.json", "--junit", "junit.xml")
    assert (result.returncode, result.stdout.strip()) == (0, "no change of level is suspected in these runs.")
    assert json.loads((tmp_path / "hook.json").read_text())["status"] == "nothing"
    assert 'tests="0"' in (tmp_path / "junit.xml").read_text()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("before",), "name two runs"),
        (("before", "nowhere"), "there is no run 'nowhere'"),
        (("before", "after", "--matters", "0%"), "--matters takes a share"),
        (("before", "after", "--matters", "soon"), "--matters takes a share"),
        (("before", "after", "--error", "100%"), "--error takes a share below 100 %"),
        (("before", "after", "--most-time", "soon"), "--most-time takes a time"),
        (("before", "after", "--case", "resnet"), "choose one with --case"),
        (("before", "after", "--python-a", "/no/python"), "/no/python is no interpreter"),
        (("before", "after", "--name", "../up"), "cannot name a watch"),
        (("--case", "resnet"), "no case of these runs matches 'resnet'"),
        (("--resume", "--name", "none"), "there is no watch 'none'"),
        (("--resume", "--matters", "2%"), "leave out --matters"),
        (("--resume", "before", "after"), "a resumed watch goes on as it began; leave out BEFORE AFTER"),
    ],
)
def test_bad_input_is_one_sentence_and_changes_nothing(program, trainmark, monkeypatch, words, sentence):
    monkeypatch.chdir(program)
    names = sorted(path.name for path in (program / "runs").iterdir())
    result = trainmark("watch", *words)
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert sentence in result.err
    assert sorted(path.name for path in (program / "runs").iterdir()) == names
