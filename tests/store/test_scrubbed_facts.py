"""A secret that a program gives as a fact is not kept; everything else of its events is, byte by byte."""

from __future__ import annotations

import json

import pytest
from fabricated_runs import ENVIRONMENT, fabricate, record

from trainmark.events import Mark, RunEnd, RunStart, Step, stream
from trainmark.store.scrubbing import scrub_events

SECRET = "hunter2-hunter2"
CASE = "pytorch-fp32-b32-1n1g"


def events_with(**facts):
    steps = [Step(0, number, 1.0 + number, 2.0, 8, loss=float("nan")) for number in range(9_000)]
    return [
        RunStart(0, 1, 0.5, 1.5, facts={"framework_version": "2.13.0", "tokens_per_second": 5, **facts}),
        *steps,
        Mark("note", 0, 3.0, 4.0, facts={"text": "all is well"}),
        RunEnd(0, 9_001.0, 9_002.0, facts={"peak_flops": 1e12}),
    ]


@pytest.mark.parametrize("where", ["wandb_api_key", "DATABASE_URL", "nested"])
def test_a_secret_among_the_facts_is_masked_and_the_events_stay(tmp_path, where):
    facts = {
        "wandb_api_key": SECRET,
        "DATABASE_URL": f"postgres://me:{SECRET}@db/x",
        "nested": {"GH_PAT": [SECRET], "plain": 1},
    }
    path = tmp_path / "events" / "rank0.jsonl"
    path.parent.mkdir()
    stream.write(path, events_with(**{where: facts[where]}))
    before = path.read_bytes().splitlines()
    scrub_events(tmp_path)
    after = path.read_bytes().splitlines()
    assert SECRET.encode() not in path.read_bytes()
    assert before[1:] == after[1:]
    assert {**json.loads(after[0])["facts"], where: 0} == {**json.loads(before[0])["facts"], where: 0}
    assert [entry.name for entry in path.parent.iterdir()] == ["rank0.jsonl"]


def test_events_without_secrets_are_not_written_again(tmp_path):
    path = tmp_path / "events" / "rank0.jsonl"
    path.parent.mkdir()
    stream.write(path, events_with())
    before = path.stat().st_ino, path.read_bytes()
    scrub_events(tmp_path)
    assert (path.stat().st_ino, path.read_bytes()) == before


def test_what_is_no_event_file_is_left_alone(tmp_path):
    (tmp_path / "events" / "rank1.jsonl").mkdir(parents=True)
    garbage = b'{"facts": {"api_key": \n\xff"facts"\n'
    (tmp_path / "events" / "rank0.jsonl").write_bytes(garbage)
    scrub_events(tmp_path)
    assert (tmp_path / "events" / "rank0.jsonl").read_bytes() == garbage


def test_secrets_in_facts_and_environments_are_not_stored(tmp_path):
    run = fabricate(tmp_path, "a", {})
    run.keep_facts({CASE: {"api_token": SECRET, "framework_version": "1"}})
    run.keep_environment({"software": {"variables": {"MYSQL_PWD": SECRET}}})
    run.keep_cluster({}, {"nodes": [{"facts": {"GH_PAT": SECRET}}]})
    run.trial(CASE, 1).begin(record(CASE, 1, 1.0).spec, {**ENVIRONMENT, "password": SECRET})
    files = [path for path in run.path.rglob("*") if path.is_file()]
    assert len(files) > 4 and not any(SECRET.encode() in path.read_bytes() for path in files)
