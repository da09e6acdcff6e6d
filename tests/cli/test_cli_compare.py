"""`compare`: the ratio with its interval, and a verdict for CI."""

from __future__ import annotations

import json
import shutil

import pytest
from fabricated_runs import BUSY, fabricate, fabricate_program

STEADY = [100.0, 101.0, 102.0, 99.0, 100.5, 101.5]
SLOWER = [rate * 0.9 for rate in STEADY]
NOISY = [70.0, 130.0, 99.0, 80.0, 120.0, 60.0]


@pytest.fixture
def against(trainmark, tmp_path):
    """Compares a steady run with one of the given rates."""

    def compared(rates: list[float], *words: str):
        for name, own in (("old", STEADY), ("new", rates)):
            shutil.rmtree(tmp_path / "runs" / name, ignore_errors=True)
            fabricate(tmp_path / "runs", name, {"1n1g": own})
        return trainmark("compare", "old", "new", *words)

    return compared


def test_a_case_that_is_surely_slower_is_marked(against):
    result = against(SLOWER)
    assert result.code == 0
    assert result.out.splitlines()[1].startswith("-")
    assert "×0.900" in result.out


def test_the_same_again_is_no_certain_change(against):
    assert against(STEADY).out.splitlines()[1].startswith("~")


def test_json_has_the_ratio_its_bounds_and_the_mark(against):
    (row,) = json.loads(against(SLOWER, "--json").out)["rows"]
    assert row["ratio"] == pytest.approx(0.9)
    assert row["low"] < 0.9 < row["high"] < 1
    assert (row["changed"], row["mark"]) == (True, "-")


def test_markdown_is_a_table(against):
    assert "| ratio |" in against(SLOWER, "--format", "md").out


def test_fail_below_fails_what_is_surely_slower(against):
    result = against(SLOWER, "--fail-below", "0.97")
    assert result.code == 1
    assert result.err.startswith("trainmark: pytorch")
    assert result.err.endswith("is at ×0.900, below 0.97.\n")


def test_fail_below_passes_what_is_above_it(against):
    result = against(SLOWER, "--fail-below", "0.85")
    assert (result.code, result.err) == (0, "")


def test_fail_below_passes_what_chance_explains(against):
    result = against(NOISY, "--fail-below", "0.97")
    assert "×0.8" in result.out
    assert (result.code, result.err) == (0, "")


def test_what_too_few_trials_leave_open_is_reported_and_fails_only_where_asked(against):
    result = against([90.0, 90.5], "--fail-below", "0.97")
    assert result.out.splitlines()[1].startswith("?")
    assert result.code == 0
    assert "below 0.97, but too few trials were run to say" in result.err
    asked = against([90.0, 90.5], "--fail-below", "0.97", "--fail-unsure")
    assert asked.code == 1
    assert asked.err.endswith(", below 0.97.\n")


def test_the_rows_that_fail_are_those_of_the_json(against):
    for rates, code in ((SLOWER, 1), (STEADY, 0), ([90.0, 90.5], 0)):
        result = against(rates, "--fail-below", "0.97", "--json")
        (row,) = json.loads(result.out)["rows"]
        assert (result.code, row["failed"]) == (code, bool(code))
        assert not row["failed"] or row["mark"] == "-"


def test_fail_unsure_without_a_limit_is_refused(against):
    result = against(STEADY, "--fail-unsure")
    assert (result.code, result.out) == (2, "")
    assert "--fail-unsure needs --fail-below." in result.err


@pytest.fixture
def programs(trainmark, tmp_path):
    """Compares two runs of one's own program with different arguments, the second four times slower."""

    def compared(*words: str, doubts=()):
        for name, line, factor in (("lr", "train.py --lr 0.1", 1.0), ("wide", "train.py --width 8", 0.25)):
            shutil.rmtree(tmp_path / "runs" / name, ignore_errors=True)
            rates = [factor * rate for rate in STEADY]
            fabricate_program(tmp_path / "runs", name, f"python {line}", rates, doubts)
        return trainmark("compare", "lr", "wide", *words)

    return compared


def test_runs_of_two_commands_are_compared_and_the_words_that_differ_are_named(programs):
    (row,) = json.loads(programs("--json").out)["rows"]
    assert (row["mark"], row["differs"]) == ("-", ["command"])
    commands = {"before": "python train.py --lr 0.1", "after": "python train.py --width 8"}
    assert row["differences"] == [{"name": "command", **commands}]
    for words in ((), ("--format", "md"), ("--format", "html")):
        assert "command −--lr 0.1 +--width 8" in programs(*words).out


def test_what_differs_between_doubtful_runs_is_not_judged_and_has_its_own_exit_code(programs):
    printed = programs("--fail-below", "0.97", doubts=(BUSY,))
    assert (printed.code, printed.out.splitlines()[1][0]) == (3, "!")
    verdict = "Do not rely on this: the host was busy in 6 of 6 trials."
    assert f"train 1n1g, lr and wide: {verdict}" in printed.out
    assert (
        printed.err == f"trainmark: train 1n1g is at ×0.250, below 0.97, which cannot be judged. {verdict}\n"
    )


def test_doubtful_runs_fail_where_asked_and_their_doubts_are_in_every_format(programs):
    assert programs("--fail-below", "0.97", "--fail-unsure", doubts=(BUSY,)).code == 1
    (row,) = json.loads(programs("--fail-below", "0.97", "--json", doubts=(BUSY,)).out)["rows"]
    assert (row["failed"], row["not_judged"], row["doubts_after"]) == (False, True, ["host-busy"])
    for kind in ("md", "html"):
        assert "Do not rely on this" in programs("--format", kind, doubts=(BUSY,)).out


@pytest.fixture
def three(trainmark, tmp_path):
    """Compares a run with a slower one and one that only has another case too."""

    def compared(*words: str):
        fabricate(tmp_path / "runs", "base", {"1n1g": STEADY})
        fabricate(tmp_path / "runs", "slow", {"1n1g": SLOWER})
        fabricate(tmp_path / "runs", "more", {"1n1g": STEADY, "1n2g": STEADY})
        return trainmark("compare", "base", "slow", "more", *words)

    return compared


def test_three_runs_have_a_column_each(three):
    header, row = three().out.splitlines()[:2]
    assert header.split() == ["case", "base", "slow", "more", "differs"]
    assert "×0.900 -" in row and row.rstrip().endswith("×1.000 ~")


def test_the_json_of_three_runs_has_each_against_the_first(three):
    document = json.loads(three("--json").out)
    assert document["runs"] == ["base", "slow", "more"]
    pairs = [(pair["before"], pair["after"], pair["rows"][0]["mark"]) for pair in document["comparisons"]]
    assert pairs == [("base", "slow", "-"), ("base", "more", "~")]
    assert [document[name] for name in ("before", "after", "rows")] == [
        document["comparisons"][0][name] for name in ("before", "after", "rows")
    ]
    assert len(document["comparisons"][1]["only_after"]) == 1


def test_one_slower_run_of_three_fails_and_is_named(three):
    result = three("--fail-below", "0.97")
    assert result.code == 1
    assert "1n1g of slow is at ×0.900, below 0.97." in result.err


def test_the_page_has_the_verdict_the_plot_and_the_table(three, tmp_path):
    result = three("--format", "html", "--out", "compare.html")
    assert result.code == 0
    page = (tmp_path / "compare.html").read_text(encoding="utf-8")
    assert "<strong>slow:</strong> 1 slower." in page
    assert 'data-plot="ratios"' in page and "axis begins at" in page
    assert len(page.encode()) < 200_000


def test_a_page_that_cannot_be_written_is_reported(three):
    result = three("--format", "html", "--out", "nowhere/compare.html")
    assert result.code == 2
    assert "nowhere/compare.html cannot be written" in result.err


def test_a_price_gives_the_cost_of_both_sides(against):
    (row,) = json.loads(against(SLOWER, "--price", "3.60/h", "--json").out)["rows"]
    assert row["cost_before"] == pytest.approx(1e6 / row["before"] / 1000)
    assert row["cost_after"] == pytest.approx(row["cost_before"] / 0.9)
    assert "3.6 a device-hour" in against(SLOWER, "--price", "3.60/h").out
    assert json.loads(against(SLOWER, "--json").out)["rows"][0]["cost_before"] is None


def test_the_costs_of_three_runs_are_a_table_of_their_own(three):
    lines = three("--price", "3.60/h").out.splitlines()
    at = next(place for place, line in enumerate(lines) if place and line.startswith("case"))
    assert lines[at].split() == ["case", "base", "slow", "more"]
    assert lines[at + 1].split()[-3:] == ["9.93", "11.0", "9.93"]


@pytest.mark.parametrize("price", ["much", "-2", "2/day", "", "1e9/h"])
def test_a_price_that_is_none_is_refused(against, price):
    result = against(STEADY, "--price", price)
    assert (result.code, result.out) == (2, "")
    assert "write 2.50/h" in result.err


def test_cases_that_only_one_side_has_are_named(trainmark, runs):
    result = trainmark("compare", "before", "after")
    assert result.code == 0
    assert "only in before: " in result.out
    assert "1n2g" in result.out


def test_runs_without_a_case_in_common_are_refused(trainmark, runs):
    result = trainmark("compare", "before", "failed")
    assert result.code == 2
    assert "before and failed have no case in common" in result.err


@pytest.mark.parametrize("limit", ["0", "-1", "nan", "much"])
def test_a_limit_that_is_none_is_refused(trainmark, runs, limit):
    result = trainmark("compare", "before", "after", "--fail-below", limit)
    assert (result.code, result.out) == (2, "")


@pytest.fixture
def two_frameworks(trainmark, tmp_path):
    """Compares a run of one framework with a run of another, whose conformance was checked."""

    def compared(*words: str):
        fabricate(tmp_path / "runs", "torch", {"1n1g": STEADY})
        other = fabricate(tmp_path / "runs", "jax", {"1n1g": SLOWER}, framework="jax")
        other.keep_facts({"jax-fp32-b32-1n1g": {"conformance": {"conformant": True, "differs": []}}})
        return trainmark("compare", "torch", "jax", *words)

    return compared


def test_runs_of_two_frameworks_are_compared_though_they_share_no_case(two_frameworks):
    result = two_frameworks()
    assert result.code == 0
    listed = result.out.partition("share of the fastest")[2]
    assert listed.index("pytorch") < listed.index("jax")
    assert "90.0 %" in result.out


def test_the_marks_of_both_runs_are_in_the_json_of_their_comparison(two_frameworks):
    (frameworks,) = json.loads(two_frameworks("--json").out)["frameworks"]
    assert [row["conformance"]["conformant"] for row in frameworks["rows"]] == [None, True]


def test_a_threshold_needs_a_case_in_common(two_frameworks):
    assert two_frameworks("--fail-below", "0.9").code != 0


def test_runs_of_one_framework_have_no_comparison_of_frameworks(against):
    assert json.loads(against(SLOWER, "--json").out)["frameworks"] == []
