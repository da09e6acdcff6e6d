"""Metrics: which way is better, and what a program may declare."""

from __future__ import annotations

import math

import pytest

from trainmark.metric import Metric, declaration, declared_metrics, score, scores_in

ACCURACY = Metric("accuracy", "accuracy", better="higher", share=True)
PERPLEXITY = Metric("perplexity", "perplexity", better="lower")


def test_a_target_is_reached_from_the_worse_side():
    assert ACCURACY.reached(0.8, 0.8) and not ACCURACY.reached(0.79, 0.8)
    assert PERPLEXITY.reached(20.0, 20.0) and not PERPLEXITY.reached(20.1, 20.0)


def test_the_better_of_two_values_has_more_goodness_and_none_has_the_least():
    assert ACCURACY.goodness(0.8) > ACCURACY.goodness(0.7) > ACCURACY.goodness(None)
    assert PERPLEXITY.goodness(20.0) > PERPLEXITY.goodness(21.0) > PERPLEXITY.goodness(None)


def test_a_share_is_written_in_percent_and_anything_else_as_it_is():
    assert (ACCURACY.text(0.7612), PERPLEXITY.text(20.123)) == ("76.12 %", "20.12")
    assert ACCURACY.target_text(0.761) == "accuracy 76.1 %"
    assert PERPLEXITY.target_text(20.5) == "perplexity 20.5"


def test_what_is_declared_is_read_back():
    assert declared_metrics({"metrics": declaration([ACCURACY, PERPLEXITY])}) == (ACCURACY, PERPLEXITY)
    assert declared_metrics({"metrics": {"perplexity": "lower"}}) == (PERPLEXITY,)


@pytest.mark.parametrize(
    "declared",
    [None, 5, [], {"a": "sideways"}, {"a": None}, {"a": {"better": "lower", "share": 1}}, {"a b": "lower"}],
)
def test_what_is_malformed_is_passed_over(declared):
    assert declared_metrics({"metrics": declared}) == ()


def test_there_are_no_more_than_a_table_can_hold_and_titles_cannot_steer_a_terminal():
    assert len(declared_metrics({"metrics": {f"m{number}": "lower" for number in range(99)}})) == 16
    (metric,) = declared_metrics({"metrics": {"a": {"title": "\x1b[2J" + "x" * 99, "better": "lower"}}})
    assert "\x1b" not in metric.title and len(metric.title) <= 40


@pytest.mark.parametrize("value", [None, "0.5", True, math.nan, math.inf, 1e31])
def test_a_value_that_is_no_finite_number_is_none(value):
    assert scores_in({"accuracy": value}, [ACCURACY]) == ()


def test_the_score_of_a_metric_is_found_by_its_name():
    scores = scores_in({"accuracy": 1, "other": 2}, [ACCURACY, PERPLEXITY])
    assert scores == (("accuracy", 1.0),)
    assert (score(scores, ACCURACY), score(scores, PERPLEXITY), score(scores, None)) == (1.0, None, None)
