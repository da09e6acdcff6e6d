"""Intervals follow the record of verified predictions, and nothing else."""

import random
import re
from dataclasses import replace
from math import exp, log
from pathlib import Path

import pytest

from trainmark.explain.what_if.changes import CHANGES
from trainmark.explain.what_if.record import (
    VerifiedChange,
    error_bounds,
    interval,
    published,
    summary,
    t_quantile,
    table,
)

DOCS = Path(__file__).parents[2] / "docs"
SHARE = re.compile(r"[+−]\d+\.\d %")
ENTRY = VerifiedChange(
    change="compile",
    workload="gpt2",
    setting="fp32-b4",
    framework="pytorch",
    device="NVIDIA H200",
    kind="cuda",
    before=0.2,
    predicted=0.1,
    measured=0.11,
    low=0.109,
    high=0.112,
    trials=6,
    date="2026-01-02",
    version="1.0",
)


def entries(errors, **fields):
    return [replace(ENTRY, measured=ENTRY.predicted * exp(error), **fields) for error in errors]


@pytest.mark.parametrize(
    ("probability", "freedom", "expected"),
    [(0.95, 3, 2.353), (0.95, 5, 2.015), (0.95, 30, 1.697), (0.975, 4, 2.776)],
)
def test_quantiles_are_those_of_students_t(probability, freedom, expected):
    assert t_quantile(probability, freedom) == pytest.approx(expected, rel=0.015)


def test_the_interval_covers_nine_of_ten_further_errors():
    chance = random.Random(1)
    covered = 0
    for _ in range(8000):
        *earlier, further = (chance.gauss(0.03, 0.1) for _ in range(9))
        low, high = error_bounds(earlier)
        covered += low <= further <= high
    assert covered / 8000 == pytest.approx(0.905, abs=0.012)


def test_without_a_record_the_interval_is_wide_and_says_that_it_is_a_guess():
    bounds = interval("compile", "cuda", entries([0.0] * 3))
    assert (bounds.low, bounds.high) == (pytest.approx(1 / 1.35), pytest.approx(1.35))
    assert bounds.basis.startswith("no record")


def test_four_entries_of_a_change_make_its_interval():
    record = [*entries([0.01, -0.01, 0.02, -0.02]), *entries([0.5, -0.5, 0.4, -0.6], change="bf16")]
    own, other = interval("compile", "cuda", record), interval("bf16", "cuda", record)
    assert own.basis == "4 verified predictions of it on cuda"
    assert log(own.high) < 0.1 < 0.5 < log(other.high)


def test_a_change_with_fewer_takes_the_errors_of_all_changes_on_its_kind_of_device():
    record = [*entries([0.1, -0.1, 0.1]), *entries([0.0], change="bf16"), *entries([2.0] * 9, kind="cpu")]
    bounds = interval("graph", "cuda", record)
    assert bounds.basis == "4 verified predictions of all changes on cuda"
    assert bounds.high < 1.5


def test_a_case_that_mended_a_rule_counts_with_what_was_predicted_before():
    right = entries([0.0, 0.01, -0.01, 0.02])
    mended = [replace(right[0], first=0.15), *right[1:]]
    assert mended[0].error == pytest.approx(right[0].error)
    assert interval("compile", "cuda", mended).low < 0.8 < interval("compile", "cuda", right).low


def test_steps_that_wait_for_the_host_are_a_record_of_their_own_whatever_the_change():
    sure = entries([0.01, -0.01, 0.02, -0.02])
    late = [
        *entries([0.3, -0.3], waits_for_host=True),
        *entries([0.2, -0.2], change="bf16", waits_for_host=True),
    ]
    own, host = (interval("compile", "cuda", [*sure, *late], waits) for waits in (False, True))
    assert own.basis == "4 verified predictions of it on cuda"
    assert host.basis == "4 verified predictions of steps that wait for the host, on cuda"
    assert log(own.high) < 0.1 < 0.5 < log(host.high)


def test_errors_to_one_side_leave_the_prediction_inside():
    bounds = interval("compile", "cuda", entries([0.5, 0.51, 0.52, 0.53]))
    assert bounds.low <= 1 < bounds.high


def test_the_published_record_is_of_changes_that_exist():
    names = {change.name for change in CHANGES}
    assert {entry.change for entry in published()} <= names
    assert all(entry.low <= entry.measured <= entry.high for entry in published())


def test_the_table_and_the_summary_say_how_far_predictions_were_off():
    record = entries([log(1.1), log(0.8)])
    lines = table(record).splitlines()
    assert len(lines) == 4
    assert "| -9.1 % |" in lines[2]
    assert "| +25.0 % |" in lines[3]
    assert summary(record).largest == pytest.approx(0.25)
    assert summary([]) is None


def test_the_documents_give_the_figures_of_the_record():
    entries, median, largest = summary(published())
    first = [replace(entry, predicted=entry.first or entry.predicted) for entry in published()]
    told = (DOCS / "explain.md").read_text(encoding="utf-8")
    assert f"has {entries} what-ifs" in told
    assert f"the median error is {100 * median:.1f} %" in told
    assert f"{100 * largest:.1f} %, inside" in told
    assert f"the median is {100 * summary(first).median:.1f} %" in told
    rows = (DOCS / "results" / "h200-explain" / "README.md").read_text(encoding="utf-8").split("\n")
    names = {entry.change for entry in published()}
    made = [row.split("|") for row in rows if row.startswith("| ")]
    made = [cells for cells in made if len(cells) == 8 and cells[1].strip(" *²³") in names]
    errors = [f"{100 * entry.error:+.1f} %".replace("-", "−") for entry in published()]
    assert sorted(SHARE.search(cells[6])[0] for cells in made) == sorted(errors)
