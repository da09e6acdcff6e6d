"""`compare`: the ratio with its interval, and a verdict for CI."""

from __future__ import annotations

import json

import pytest
from fabricated_runs import fabricate

STEADY = [100.0, 101.0, 102.0, 99.0, 100.5, 101.5]
SLOWER = [rate * 0.9 for rate in STEADY]
NOISY = [70.0, 130.0, 99.0, 80.0, 120.0, 60.0]


@pytest.fixture
def against(trainmark, tmp_path):
    """Compares a steady run with one of the given rates."""

    def compared(rates: list[float], *words: str):
        fabricate(tmp_path / "runs", "old", {"1n1g": STEADY})
        fabricate(tmp_path / "runs", "new", {"1n1g": rates})
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


def test_fail_below_fails_what_too_few_trials_leave_open(against):
    result = against([90.0, 90.5], "--fail-below", "0.97")
    assert result.out.splitlines()[1].startswith("?")
    assert result.code == 1


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
    rows = [line.split() for line in result.out.splitlines() if line.startswith("1n1g")]
    assert [row[1] for row in rows] == ["pytorch", "jax"]
    assert "90.0 %" in result.out


def test_the_marks_of_both_runs_are_in_the_json_of_their_comparison(two_frameworks):
    (frameworks,) = json.loads(two_frameworks("--json").out)["frameworks"]
    assert [row["conformance"]["conformant"] for row in frameworks["rows"]] == [None, True]


def test_a_threshold_needs_a_case_in_common(two_frameworks):
    assert two_frameworks("--fail-below", "0.9").code != 0


def test_runs_of_one_framework_have_no_comparison_of_frameworks(against):
    assert json.loads(against(SLOWER, "--json").out)["frameworks"] == []
