"""`trainmark export`: all forms, where they go, and what is refused."""

from __future__ import annotations

import csv
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from exported_runs import odd_run, run_with_events
from fabricated_runs import keep, record

from trainmark.cli.report import TARGETS
from trainmark.pages.export.export import WRITERS

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


def test_the_command_offers_every_form_that_can_be_written():
    assert set(TARGETS) == set(WRITERS)


@pytest.mark.parametrize("target", TARGETS)
def test_every_form_tells_scripts_what_it_wrote_and_what_it_left_out(trainmark, run, tmp_path, target):
    code, out, err = trainmark("export", "mine", "--to", target, "--json")
    assert (code, err) == (0, "")
    answer = json.loads(out)
    folder = tmp_path / answer["out"]
    assert folder == run.path / "export" / target
    assert answer["files"] and all((folder / file).stat().st_size for file in answer["files"])
    left_out = [] if target in ("csv", "mlflow", "junit") else ["pytorch-fp32-b32-1n8g/02"]
    assert [skipped["trial"] for skipped in answer["skipped"]] == left_out


def test_what_is_left_out_is_said_on_standard_error(trainmark, run):
    code, out, err = trainmark("export", "--to", "mllog", "--out", "logs")
    assert (code, out) == (0, "mllog       logs  (4 files)\n")
    assert err == "left out  pytorch-fp32-b32-1n8g/02: crashed\n"


def test_a_folder_that_is_not_empty_is_refused_and_untouched(trainmark, run, tmp_path):
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "mine.txt").write_text("mine")
    for words, advice in (([], "or replace it with --force"), (["--force"], "did not write")):
        code, out, err = trainmark("export", "--to", "csv", "--out", "logs", *words)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert advice in err
    assert [path.name for path in (tmp_path / "logs").iterdir()] == ["mine.txt"]


def test_force_replaces_an_earlier_export_whole(trainmark, run, tmp_path):
    assert trainmark("export", "--to", "mllog", "--out", "logs")[0] == 0
    assert trainmark("export", "--to", "csv", "--out", "logs")[0] == 2
    assert trainmark("export", "--to", "csv", "--out", "logs", "--force")[0] == 0
    assert {path.name for path in (tmp_path / "logs").iterdir()} == {"trials.csv", ".trainmark-export.json"}
    assert {path.name for path in tmp_path.iterdir()} == {"runs", "logs"}


def test_a_run_with_nothing_measured_is_refused_and_leaves_nothing(trainmark, tmp_path):
    run_with_events(tmp_path / "runs", "failed", {"1n1g": [None]})
    code, out, err = trainmark("export", "failed", "--to", "dllogger", "--out", "logs")
    assert (code, out) == (2, "")
    assert err == "trainmark: run 'failed' has no trial to export: pytorch-fp32-b32-1n1g/01 crashed.\n"
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]


def test_a_trial_without_readable_events_is_named(trainmark, run):
    folder = run.path / "trials" / "pytorch-fp32-b32-1n1g"
    shutil.rmtree(folder / "01" / "events")
    (folder / "02" / "events" / "rank0.jsonl").write_text("{}\n")
    code, _, err = trainmark("export", "--to", "dllogger", "--out", "logs")
    assert code == 0
    assert "left out  pytorch-fp32-b32-1n1g/01: no readable events: " in err
    assert "left out  pytorch-fp32-b32-1n1g/02: no readable events: rank0.jsonl:1: " in err


def test_times_that_no_calendar_has_are_a_reason_to_leave_a_trial_out(trainmark, run):
    events = run.path / "trials" / "pytorch-fp32-b32-1n1g" / "01" / "events" / "rank0.jsonl"
    lines = [json.loads(line) for line in events.read_text().splitlines()]
    lines[0]["wall"] = -1e9
    events.write_text("".join(json.dumps(line) + "\n" for line in lines))
    code, _, err = trainmark("export", "--to", "dllogger", "--out", "logs")
    assert code == 0
    assert "01: no readable events: its times lie outside the years 1970 to 9999." in err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nowhere", "--to", "csv"], "there is no run 'nowhere'"),
        (["--to", "xml"], "'xml' is not one of"),
        (["--to", "csv", "--out", "runs/mine/run.json"], "run.json is a file; choose a folder with --out."),
        (["--to", "csv", "--out", "/dev/null/x"], "/dev/null/x cannot be written: "),
    ],
)
def test_bad_input_is_one_sentence(trainmark, run, words, sentence):
    code, out, err = trainmark("export", *words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert sentence in err


def test_the_table_has_every_trial_and_no_formula(trainmark, tmp_path):
    odd_run(tmp_path / "runs", "odd", variant='=HYPERLINK("x")\n')
    assert trainmark("export", "odd", "--to", "csv", "--out", "table")[0] == 0
    with (tmp_path / "table" / "trials.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["run"], row["throughput"], row["variant"]) == ("odd", "100.0", '\'=HYPERLINK("x")')


def test_a_real_run_is_exported_in_every_form(trainmark, tmp_path):
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    assert trainmark("run", "examples/probe/suite.yaml", "--repeats", "2", "--name", "real")[0] == 0
    for target in TARGETS:
        code, out, err = trainmark("export", "real", "--to", target, "--json")
        assert (code, err) == (0, "")
        assert json.loads(out)["skipped"] == []
    rows = json.loads(trainmark("show", "real", "--json")[1])["trials"]
    (rule,) = (tmp_path / "runs" / "real" / "export" / "dlperf").glob("*/trainmark.json")
    logs = json.loads(rule.read_text())["logs"]
    assert [log["throughput"] for log in logs.values()] == [row["throughput"] for row in rows]


def test_the_table_has_the_axes_of_every_workload(trainmark, tmp_path):
    run = odd_run(tmp_path / "runs", "odd")
    other = record("other", 1, 100.0)
    keep(run, replace(other, key=replace(other.key, workload="friedman", axes=(("width", 64),))))
    assert trainmark("export", "odd", "--to", "csv", "--out", "table")[0] == 0
    with (tmp_path / "table" / "trials.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["width"] for row in rows] == ["", "64"]
