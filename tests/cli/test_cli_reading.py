"""`list`, `show`, `report`, `query` and `suites`: what scripts and people read."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import time

import pytest
from fabricated_runs import CREATED, fabricate

CASE = "pytorch-fp32-b32-1n1g"
FORMATS = ("json", "csv", "md", "html", "text")


def test_list_names_the_runs_oldest_first_with_how_far_they_got(trainmark, runs):
    result = trainmark("list")
    assert result.code == 0
    assert [line.split()[0] for line in result.out.splitlines()] == ["run", "failed", "before", "after"]
    assert "7/8, 1 failed" in result.out


def test_list_shows_the_main_figure_of_each_run(trainmark, runs):
    _, failed, before, after = trainmark("list").out.splitlines()
    assert before.split()[-3:] == ["2", "190.0", "images/s"]
    assert "pytorch 2.13.0" in after and after.endswith(" 110.8  [109.0, 112.0]  images/s")
    assert failed.split()[-1] == "0"


def test_list_with_a_price_has_the_cost_of_all_devices(trainmark, runs):
    rows = json.loads(trainmark("list", "--price", "3.60/h", "--json").out)
    assert rows[0]["headline"] is None
    assert rows[1]["headline"]["cost_per_million"] == pytest.approx(2 * 1e6 / 190 / 1000)
    text = trainmark("list", "--price", "3.60/h").out.splitlines()
    assert "cost/M" in text[0] and "10.5" in text[2]
    assert text[-1] == "cost/M and kWh/M: of a million samples, at 3.6 a device-hour"


def test_a_report_with_a_price_has_the_cost_of_each_case(trainmark, runs):
    document = json.loads(trainmark("report", "after", "--format", "json", "--price", "3.60/h").out)
    (result,) = document["results"]
    assert result["cost_per_million"] == pytest.approx(1e6 / 110.75 / 1000)
    for kind in ("md", "html", "text"):
        assert "3.6 a device-hour" in trainmark("report", "after", "--format", kind, "--price", "3.60/h").out
        assert "device-hour" not in trainmark("report", "after", "--format", kind).out


def test_list_json_has_what_scripts_rely_on(trainmark, runs):
    rows = json.loads(trainmark("list", "--json").out)
    assert [row["name"] for row in rows] == ["failed", "before", "after"]
    assert rows[1].keys() >= {"name", "path", "suite", "created", "status", "ok", "failed", "outcomes"}


def test_list_says_damaged_where_a_trial_cannot_be_read(trainmark, runs):
    (runs / "before" / "trials" / CASE / "01" / "figure.json").write_text("{")
    result = trainmark("list")
    assert result.code == 0
    assert "damaged" in result.out.splitlines()[2]


def test_list_where_there_is_nothing_says_how_to_begin(trainmark):
    assert trainmark("list").out == "no runs in runs; make one with `trainmark run quick`\n"
    assert json.loads(trainmark("list", "--json").out) == []


def test_the_folder_of_runs_may_be_told_by_option_or_environment(trainmark, runs, monkeypatch):
    shutil.move(runs, runs.with_name("elsewhere"))
    assert len(trainmark("list", "--runs", "elsewhere").out.splitlines()) == 4
    monkeypatch.setenv("TRAINMARK_RUNS", "elsewhere")
    assert len(trainmark("list").out.splitlines()) == 4


def test_show_tells_results_trials_and_what_was_skipped(trainmark, runs):
    result = trainmark("show")
    assert result.code == 0
    assert "after: Fabricated." in result.out
    assert "110.8 img/s" in result.out
    assert f"{CASE}/06  ok          111.50 images/s" in result.out
    assert "pytorch-fp32-b32-1n8g  skipped     needs 8 CUDA devices a node" in result.out


def test_show_json_has_the_run_its_trials_and_what_was_skipped(trainmark, runs):
    document = json.loads(trainmark("show", "before", "--json").out)
    assert (document["name"], document["ok"], document["failed"]) == ("before", 7, 1)
    assert [trial["outcome"] for trial in document["trials"]] == ["ok"] * 7 + ["crashed"]


def test_show_of_one_trial_tells_its_figure_doubts_command_and_last_lines(trainmark, runs):
    result = trainmark("show", "before", f"{CASE}/02")
    assert result.code == 0
    for part in (
        "throughput           101\n",
        "! data-bound",
        "OMP_NUM_THREADS=1 python -m train",
        "this is trial 2",
    ):
        assert part in result.out


def test_show_of_a_failed_trial_tells_why_and_after_which_retries(trainmark, runs):
    result = trainmark("show", "failed", f"{CASE}/01")
    assert result.code == 0
    for part in ("crashed", "ValueError: no luck", "crashed: port taken", "this is trial 1"):
        assert part in result.out
    assert json.loads(trainmark("show", "failed", f"{CASE}/01", "--json").out)["throughput"] is None


@pytest.mark.parametrize("trial", [f"{CASE}/99", f"../../before/trials/{CASE}/01", "", "/etc", CASE])
def test_show_of_a_trial_that_is_not_there_says_so(trainmark, runs, trial):
    result = trainmark("show", "after", trial or " ")
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("trainmark: there is no finished trial")


def test_report_writes_all_formats_into_the_run_and_says_where(trainmark, runs):
    result = trainmark("report", "before")
    assert result.code == 0
    for line in result.out.splitlines():
        assert (runs.parent / line.split()[1]).stat().st_size > 0
    assert {path.name for path in (runs / "before").glob("report*")} == {
        "report.html",
        "report.md",
        "report.json",
        "report.csv",
    }


def test_report_in_chinese_stands_beside_the_english_one(trainmark, runs):
    assert trainmark("report", "before", "--lang", "zh", "--out", "reports").code == 0
    assert (runs.parent / "reports" / "report.zh.md").read_text(encoding="utf-8").count("加速比")
    assert not (runs / "before" / "report.md").exists()


def test_report_json_keeps_its_contract(trainmark, runs):
    document = json.loads(trainmark("report", "before", "--format", "json").out)
    one, two = document["results"]
    assert (one["workload"], one["framework"], one["precision"]) == ("resnet50", "pytorch", "fp32")
    assert (one["batch_per_device"], one["nodes"], one["devices_per_node"]) == (32, 1, 1)
    assert one["throughput"].keys() >= {"median", "low", "high", "n", "unit"}
    assert (one["throughput"]["median"], one["throughput"]["n"]) == (100.75, 6)
    assert one["throughput"]["low"] < 100.75 < one["throughput"]["high"]
    assert (two["throughput"]["n"], two["throughput"]["low"]) == (1, None)
    assert two["speedup"].keys() >= {"value", "low", "high"}
    assert one["memory_bytes"] == 3 << 30
    assert [doubt["code"] for doubt in one["doubts"]] == ["data-bound"]
    assert one["doubts"][0]["message"].endswith("the step waits for data: add loader workers.")
    assert document["environment"]["host"]["hostname"] == "bench-1"


def test_report_csv_has_a_row_a_result(trainmark, runs):
    rows = list(csv.DictReader(io.StringIO(trainmark("report", "before", "--format", "csv").out)))
    assert [row["devices_per_node"] for row in rows] == ["1", "2"]


@pytest.mark.parametrize("kind", FORMATS)
def test_one_format_is_printed_or_written_to_the_file_asked_for(trainmark, runs, kind):
    printed = trainmark("report", "before", "--format", kind)
    written = trainmark("report", "before", "--format", kind, "--out", f"mine.{kind}")
    assert (printed.code, written.code) == (0, 0)
    assert (runs.parent / f"mine.{kind}").read_text(encoding="utf-8") == printed.out
    assert not list((runs / "before").glob("report*"))


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_run_with_no_finished_trial_can_be_reported(trainmark, runs, kind, lang):
    fabricate(runs, "empty", {})
    result = trainmark("report", "empty", "--format", kind, "--lang", lang)
    assert (result.code, result.err) == (0, "")


@pytest.mark.parametrize("kind", ["json", "md", "html"])
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_run_whose_trials_all_failed_shows_the_failures(trainmark, runs, kind, lang):
    result = trainmark("report", "failed", "--format", kind, "--lang", lang)
    assert (result.code, result.err) == (0, "")
    assert "no luck" in result.out


@pytest.mark.parametrize(
    "command", [("report", "before"), ("show", "before"), ("compare", "before", "after"), ("query",)]
)
def test_a_damaged_trial_is_named_once_and_the_rest_is_shown(trainmark, runs, command):
    (runs / "before" / "trials" / CASE / "01" / "figure.json").write_text("{")
    result = trainmark(*command)
    assert result.code == 0 and result.out
    assert "01/figure.json is damaged" in result.err
    assert result.err.count("\n") == 1


def test_a_report_of_a_run_without_its_run_json_names_it_and_shows_the_figures(trainmark, runs):
    whole = trainmark("report", "before", "--format", "text").out
    for lose in (lambda path: path.write_text("{"), lambda path: path.unlink()):
        lose(runs / "before" / "run.json")
        result = trainmark("report", "before")
        assert result.code == 0 and result.out.endswith(whole)
        assert "before/run.json is damaged" in result.err


def test_a_report_that_cannot_be_written_says_where(trainmark, runs):
    for out in ("/dev/null/x", "gone/x.md", "."):
        result = trainmark("report", "before", "--format", "md", "--out", out)
        assert result.code == 2
        assert result.err.startswith("trainmark: the report cannot be written to ")


def test_query_counts_the_trials_by_run_and_outcome_the_oldest_run_first(trainmark, runs):
    result = trainmark("query")
    assert result.code == 0
    assert [line.split() for line in result.out.splitlines()] == [
        ["run", "outcome", "trials"],
        ["failed", "crashed", "2"],
        ["before", "ok", "7"],
        ["before", "crashed", "1"],
        ["after", "ok", "6"],
    ]


def test_query_json_answers_with_objects_and_rebuilds_when_told(trainmark, runs):
    result = trainmark(
        "query", "SELECT run, max(throughput) AS best FROM trials GROUP BY run ORDER BY run", "--json"
    )
    assert json.loads(result.out) == [
        {"run": "after", "best": 112.0},
        {"run": "before", "best": 190.0},
        {"run": "failed", "best": None},
    ]
    assert trainmark("query", "--rebuild").code == 0


def test_numbers_and_times_are_printed_to_be_read_and_given_raw_as_json(trainmark, runs):
    made, began = (time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(CREATED + s)) for s in (60, 2))
    sql = "SELECT created, throughput / 3 AS rate, memory_bytes, step_seconds FROM trials WHERE run = 'after'"
    sql += " ORDER BY throughput LIMIT 1"
    text = trainmark("query", sql).out.splitlines()[1]
    assert re.split(" {2,}", text) == [made, "36.33", "3.00 GiB", "100 ms"]
    (row,) = json.loads(trainmark("query", sql, "--json").out)
    assert (row["created"], row["memory_bytes"], row["step_seconds"]) == (CREATED + 60, 3 << 30, 0.1)
    shown = trainmark("show", "after", f"{CASE}/02").out
    assert f"started              {began}\n" in shown
    assert "memory bytes         3.00 GiB\n" in shown


def test_suites_lists_and_shows_what_is_built_in(trainmark):
    result = trainmark("suites")
    assert result.code == 0
    assert "\nquick  " in result.out
    assert {row["name"]: row["cases"] for row in json.loads(trainmark("suites", "--json").out)}["quick"] == 4
    assert trainmark("suites", "show", "quick").out.startswith("name: quick\n")


def test_env_json_is_one_object(trainmark):
    result = trainmark("env", "--json")
    assert result.code == 0
    assert json.loads(result.out).keys() >= {"host", "devices", "software"}
