"""`run` on programs of a second or less: its exit codes, its plan, its refusals."""

from __future__ import annotations

import json
import shlex
import shutil
import sys

import pytest

from trainmark.measure.utilisation import ReferenceRate
from trainmark.store.measurements import write_reference_rates

TAKEN = "2025-11-13T08:00:00+00:00"
PROGRAM = """
from trainmark import probe

run = probe.start()
for _ in range(40):
    sum(range(20_000))
    run.step(samples=1)
run.end()
"""


@pytest.fixture
def suite(tmp_path):
    """Writes a suite around a command and gives its path."""
    (tmp_path / "train.py").write_text(PROGRAM)

    def written(command: str, more: str = "") -> str:
        workload = json.dumps({"command": command, "name": "mine"})
        text = f"workload: {workload}\nrepeats: 2\nwarmup: {{steps: 5}}\nmeasure: {{steps: 30}}\n{more}"
        (tmp_path / "mine.yaml").write_text(text)
        return "mine.yaml"

    return written


def test_a_run_whose_trials_went_well_ends_with_0_and_a_report(trainmark, suite, tmp_path):
    result = trainmark("run", suite("{python} train.py"), "--name", "a", "--json")
    assert result.code == 0
    assert json.loads(result.out)["results"][0]["throughput"]["n"] == 2
    assert (tmp_path / "runs" / "a" / "report.md").is_file()


def test_a_run_with_failed_trials_ends_with_1_and_says_why(trainmark, suite):
    result = trainmark("run", suite("echo no luck; exit 3", "retries: 0\n"), "--name", "a")
    assert result.code == 1
    assert "no luck" in result.err
    assert "no luck" in trainmark("report", "a", "--format", "md").out


def test_a_run_without_one_good_trial_ends_in_the_reasons_and_is_failed_for_good(trainmark, suite):
    result = trainmark("run", suite("echo no luck; exit 3", "retries: 0\n"), "--repeats", "5", "--name", "a")
    reason = "mine-b32-1n1g: 2 × crashed: rank 0 left with exit code 3: no luck"
    assert f"no trial succeeded:\n{reason}\n" in result.out
    assert "`trainmark show a mine-b32-1n1g/01`" in result.out
    assert reason in trainmark("report", "a").out
    assert [row["status"] for row in json.loads(trainmark("list", "--json").out)] == ["failed"]


def test_a_run_that_is_gone_on_with_is_not_ended_until_its_last_trial(trainmark, suite, tmp_path):
    ended = tmp_path / "runs" / "a" / "ended.json"
    trainmark("run", suite(f"test ! -e {ended} && {{python}} train.py"), "--repeats", "1", "--name", "a")
    assert ended.is_file()
    shutil.rmtree(tmp_path / "runs" / "a" / "trials")
    assert trainmark("run", "--resume", "a").code == 0
    assert ended.is_file()


def test_a_finished_run_resumed_runs_nothing_again(trainmark, suite, tmp_path):
    trainmark("run", suite("{python} train.py"), "--name", "a")
    folders = sorted((tmp_path / "runs" / "a" / "trials").glob("*/*"))
    times = [folder.stat().st_mtime_ns for folder in folders]
    assert trainmark("run", "--resume", "a").code == 0
    assert sorted((tmp_path / "runs" / "a" / "trials").glob("*/*")) == folders
    assert [folder.stat().st_mtime_ns for folder in folders] == times


def test_a_dry_run_shows_every_trial_with_its_command_and_makes_nothing(trainmark, suite, tmp_path):
    result = trainmark("run", suite("{python} train.py --batch {batch_per_device}"), "--dry-run", "--json")
    plan = json.loads(result.out)
    assert result.code == 0
    assert [trial["id"] for trial in plan["trials"]] == ["mine-b32-1n1g/01", "mine-b32-1n1g/02"]
    assert f"{shlex.quote(sys.executable)} train.py --batch 32" in plan["trials"][0]["command"]
    assert not (tmp_path / "runs").exists()


def test_a_dry_run_names_what_this_machine_cannot_hold(trainmark, suite):
    result = trainmark("run", suite("true", "topology: [1n1g, 9n1g]\n"), "--dry-run")
    assert result.code == 0
    assert "skip  mine-b32-9n1g: needs 9 nodes; this run has 1 (--hosts names more)" in result.out


def test_a_dry_run_with_nothing_to_run_ends_as_the_run_would(trainmark, suite):
    result = trainmark("run", suite("true", "topology: [9n1g]\n"), "--dry-run", "--json")
    assert result.code == 2
    assert json.loads(result.out)["trials"] == []
    assert "nothing in this suite can run here: needs 9 nodes" in result.err


@pytest.mark.parametrize(
    ("command", "overrides", "sentence"),
    [
        ("train {batch}", [], "the command has no value for '{batch}'; did you mean 'batch_per_device'?"),
        ("true", ["workload.reader=prob"], "there is no reader 'prob'; did you mean 'probe'?"),
        ("true", ["workload.pattern=("], "'pattern' takes a regular expression, not '('"),
        (
            "true",
            ["topology=9n1g"],
            "nothing in this suite can run here: needs 9 nodes; this run has 1 (--hosts names more).",
        ),
        (
            "true",
            ["when=cuda"],
            "nothing in this suite can run here: all its cases are for another kind of machine.",
        ),
    ],
)
def test_what_cannot_be_measured_is_refused_before_anything_is_made(
    trainmark, suite, tmp_path, command, overrides, sentence
):
    result = trainmark("run", suite(command), *(word for change in overrides for word in ("--set", change)))
    assert (result.code, result.out) == (2, "")
    assert sentence in result.err
    assert result.err.count("\n") == 1
    assert not (tmp_path / "runs").exists()


def test_of_a_users_program_nothing_is_assumed_that_its_suite_does_not_say(trainmark, suite):
    reply = trainmark("run", suite("{python} train.py"), "--name", "a", "--json")
    (result,) = json.loads(reply.out)["results"]
    unsaid = ("precision", "layout", "data", "image_size", "loss_scale")
    assert [result[name] for name in unsaid] == [None] * len(unsaid)


def test_a_command_that_asks_for_what_its_suite_does_not_say_is_refused(trainmark, suite, tmp_path):
    result = trainmark("run", suite("{python} train.py --precision {precision}"))
    assert result.code == 2
    assert "give the suite a value for 'precision'" in result.err
    assert not (tmp_path / "runs").exists()


def test_what_a_pattern_found_is_kept_as_events_and_drawn(trainmark, tmp_path):
    program = "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo step $i; sleep 0.02; done"
    workload = json.dumps({"command": program, "name": "mine", "pattern": "^step"})
    (tmp_path / "mine.yaml").write_text(f"workload: {workload}\nrepeats: 1\nwarmup: {{steps: 0}}\n")
    assert trainmark("run", "mine.yaml", "--name", "a").code == 0
    (events,) = (tmp_path / "runs" / "a" / "trials").glob("*/01/events/rank0.jsonl")
    assert events.read_text().count('"event":"step"') == 11


def test_nobody_can_have_published_a_program_of_ones_own(trainmark, suite):
    result = trainmark("run", suite("{python} train.py"), "--name", "a", "--json")
    assert json.loads(result.out)["results"][0]["published"] is None
    assert "best published" not in trainmark("report", "a", "--format", "md").out
    assert "best published" not in trainmark("compare", "a", "a").out


def test_a_run_on_a_device_with_a_reference_shows_its_share_of_light(trainmark, suite, tmp_path, monkeypatch):
    monkeypatch.setenv("TRAINMARK_HOME", str(tmp_path / "home"))
    asked = suite("{python} train.py", "image_size: 64\nprecision: fp32\n")
    (plain,) = json.loads(trainmark("run", asked, "--name", "a", "--json").out)["results"]
    assert plain["light_share"] is None
    rate = 2 * plain["throughput"]["median"]
    write_reference_rates(
        tmp_path / "home",
        [ReferenceRate(plain["device"], "mine", (("image_size", 64),), "fp32", rate, 32, "0.1.0", TAKEN)],
    )
    (lit,) = json.loads(trainmark("run", "--resume", "a", "--json").out)["results"]
    assert lit["light_share"] == 0.5
