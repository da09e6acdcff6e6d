"""A run that was resumed is pushed again with more trials; nothing that is stored can be changed that way."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from benchmarks.serving.packs import MadeRun, write_run

from trainmark.server.access.tokens import Role
from trainmark.store.archive import pack

MADE = MadeRun(name="resumed", rates=(80.0, 81.0, 82.0), host="resumed")


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> dict[str, Path]:
    """The run after its first trial, and after all; and with its first trial gone."""
    folder = tmp_path_factory.mktemp("resumed")
    run = write_run(folder / "run", MADE)
    packed = {"all": pack(run, folder / "all.trainmark").path}
    trials = run.path / "trials" / "softmax-b8"
    shutil.move(trials / "01", folder / "01")
    packed["without first"] = pack(run, folder / "without.trainmark").path
    shutil.move(folder / "01", trials / "01")
    for repeat in ("02", "03"):
        shutil.rmtree(trials / repeat)
    packed["first"] = pack(run, folder / "first.trainmark").path
    return packed


@pytest.fixture(scope="module")
def replaced(server, files):
    """Pushed after one trial, then after all."""
    answers = [server.push(files[name], server.tokens[Role.PUSH]) for name in ("first", "all")]
    assert [answer.status for answer in answers] == [201, 201], answers
    return server


def detail(server):
    return server.request(f"/api/v1/runs/{MADE.uuid}", server.tokens[Role.READ]).json


def test_a_resumed_run_is_stored_with_all_its_trials_as_one_run(replaced):
    assert [trial["repeat"] for trial in detail(replaced)["trials"]] == [1, 2, 3]
    assert [result["n"] for result in detail(replaced)["results"]] == [3]


def test_a_file_that_a_newer_one_replaced_was_stored_before_and_replaces_nothing(replaced, files):
    answer = replaced.push(files["first"], replaced.tokens[Role.PUSH])
    assert (answer.status, answer.json["run"], answer.json["new"]) == (200, MADE.uuid, False)
    assert len(detail(replaced)["trials"]) == 3


def test_a_stored_trial_cannot_be_left_out_afterwards(replaced, files):
    answer = replaced.push(files["without first"], replaced.tokens[Role.PUSH])
    assert answer.status == 409 and "stored with other contents" in answer.json["error"]
    assert len(detail(replaced)["trials"]) == 3


def test_somebody_elses_run_cannot_be_replaced(server, replaced, tmp_path):
    other = replaced.token("somebody-else", Role.PUSH)
    folder = write_run(tmp_path / "run", MADE).path
    about = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**about, "about": "another text"}))
    from trainmark.store.run import RunFolder

    answer = server.push(pack(RunFolder(folder), tmp_path / "x.trainmark").path, other)
    assert answer.status == 403 and "was pushed by 'push'" in answer.json["error"]
