"""`trainmark history` over run folders: what it reads, orders, links and refuses."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from fabricated_runs import fabricate_program
from made_runs import DAY, FIRST_DAY, KEY, Day, write_days, write_run

from trainmark.api.histories import parse_since
from trainmark.base.errors import UserError

BEFORE = Day(100.0)
AFTER = Day(95.0, version="2.13.0", driver="560.28.03", commit="b" * 40)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Fourteen nightly runs of two cases; with the ninth everything becomes 5 % slower."""
    folder = tmp_path_factory.mktemp("history") / "runs"
    write_days(folder, [BEFORE] * 8 + [AFTER] * 6, (KEY, replace(KEY, batch_per_device=64)))
    (folder / "nightly-008" / "report.html").write_text("a report")
    return folder


def cases(printed) -> list[dict]:
    assert printed.code == 0, printed.err
    return json.loads(printed.out)["cases"]


def test_a_lasting_step_is_marked_with_the_facts_that_changed_there(trainmark, runs):
    case = cases(trainmark("history", "--runs", str(runs), "--json"))[0]
    (change,) = case["changes"]
    assert (change["index"], change["run"]) == (8, "nightly-008")
    assert change["low"] < 0.95 < change["high"]
    names = [fact["name"] for fact in change["facts"] if fact["fit"] == 1]
    assert names == ["framework_version", "driver", "commit"]


def test_the_terminal_lists_each_case_with_its_latest_figure(trainmark, runs):
    printed = trainmark("history", "--runs", str(runs))
    rows = [line for line in printed.out.splitlines() if line.startswith("pytorch fp32")]
    assert len(rows) == 2
    assert all("images/s" in row and "↓" in row for row in rows)


def test_by_version_the_older_version_comes_first_although_it_was_measured_last(trainmark, tmp_path):
    folder = tmp_path / "runs"
    write_run(folder, "new", 0, AFTER)
    write_run(folder, "old", 1, BEFORE)
    case = cases(trainmark("history", "--runs", str(folder), "--by", "version", "--json"))[0]
    assert [point["run"] for point in case["points"]] == ["old", "new"]


def test_commands_of_ones_own_program_are_lines_of_their_own_and_explain_adds_no_point(trainmark, tmp_path):
    folder = tmp_path / "runs"
    for number, (name, option) in enumerate((("a", "--lr 0.1"), ("b", "--width 8"), ("c", "--lr 0.1"))):
        fabricate_program(folder, name, f"python train.py {option}", [100.0], created=FIRST_DAY + number)
    fabricate_program(folder, "x", "python train.py --lr 0.1", [1.0], (), "trainmark explain")
    shown = cases(trainmark("history", "--runs", str(folder), "--json"))
    names = [(case["case"], [point["run"] for point in case["points"]]) for case in shown]
    assert names == [("train 1n1g (--lr 0.1)", ["a", "c"]), ("train 1n1g (--width 8)", ["b"])]
    assert shown[0]["command"] == "python train.py --lr 0.1"


def test_since_leaves_out_older_results(trainmark, runs):
    printed = trainmark("history", "--runs", str(runs), "--since", "2026-01-12", "--json")
    assert [point["run"] for point in cases(printed)[0]["points"]] == [
        f"nightly-{number:03d}" for number in (11, 12, 13)
    ]


def test_named_runs_alone_are_shown(trainmark, runs):
    printed = trainmark("history", "nightly-001", "nightly-002", "--runs", str(runs), "--json")
    assert len(cases(printed)[0]["points"]) == 2


def test_folders_of_two_machines_are_two_lines_even_where_their_runs_have_one_name(trainmark, tmp_path):
    for host in ("bench-1", "bench-2"):
        write_run(tmp_path / host, "night", 0, replace(BEFORE, host=host))
    lines = cases(trainmark("history", str(tmp_path / "bench-1"), str(tmp_path / "bench-2"), "--json"))
    assert [line["machine"] for line in lines] == ["bench-1", "bench-2"]
    assert [len(line["points"][0]["trials"]) for line in lines] == [6, 6]


def test_a_written_page_links_the_reports_that_exist_relative_to_itself(trainmark, runs):
    page = runs.parent / "pages" / "history.html"
    page.parent.mkdir(exist_ok=True)
    printed = trainmark("history", "--runs", str(runs), "--format", "html", "--out", str(page))
    assert printed.code == 0, printed.err
    document = page.read_text()
    assert 'href="../runs/nightly-008/report.html"' in document
    assert "nightly-007/report.html" not in document


def test_the_clock_during_a_trial_is_a_fact_of_its_result(trainmark, tmp_path):
    run = write_run(tmp_path / "runs", "night", 0, BEFORE)
    for samples in sorted(run.trials.glob("*/*")):
        line = '{"event":"device_sample","device":"cuda:0","clock_mhz":%s}\n'
        (samples / "samples.jsonl").write_text(line % 1980 + line % 1410 + line % 1410)
    case = cases(trainmark("history", "--json"))[0]
    assert case["points"][0]["facts"]["clock_mhz"] == "1410"


def test_a_damaged_environment_costs_its_facts_and_no_result(trainmark, tmp_path):
    run = write_run(tmp_path / "runs", "night", 0, BEFORE)
    for path in run.trials.glob("*/*/environment.json"):
        path.write_text("{")
    (case,) = cases(trainmark("history", "--json"))
    assert len(case["points"][0]["trials"]) == 6
    assert "driver" not in case["points"][0]["facts"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--case", "nothing-like-it"), "no case matches --case nothing-like-it"),
        (("--since", "yesterday"), "--since yesterday is no date"),
        (("--since", "2099-01-01"), "no result is from 2099-01-01 or later"),
        (("--by", "weather"), "is not one of"),
        (("no-such-run",), "there is no run 'no-such-run'"),
    ],
)
def test_what_cannot_be_shown_is_refused_in_one_sentence(trainmark, runs, words, sentence):
    printed = trainmark("history", "--runs", str(runs), *words)
    assert (printed.code, printed.err.count("\n")) == (2, 1)
    assert sentence in printed.err


def test_a_folder_without_runs_says_how_to_make_one(trainmark):
    printed = trainmark("history")
    assert (printed.code, printed.out) == (2, "")
    assert "there are no runs in runs" in printed.err


def test_a_fact_that_nothing_recorded_cannot_order_results(trainmark, tmp_path):
    write_run(tmp_path / "runs", "night", 0, replace(BEFORE, driver=""))
    printed = trainmark("history", "--by", "driver")
    assert printed.code == 2
    assert "no result has a recorded driver" in printed.err


def test_ages_count_back_from_now_and_dates_are_utc():
    assert parse_since("2d", FIRST_DAY) == FIRST_DAY - 2 * DAY
    assert parse_since("2026-01-01", 0.0) == FIRST_DAY
    with pytest.raises(UserError):
        parse_since("12", 0.0)
