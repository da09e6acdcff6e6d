"""Several cases beside one baseline, looked at after every trial."""

from __future__ import annotations

import random

import pytest

from trainmark.measure.ab import ERROR, FEWEST_PAIRS, ABVerdict, contrasts


def rates(**levels):
    """Six rounds at these levels, each trial off by a thousandth at most."""
    noise = random.Random(3)
    return {
        case: {number: level * (1 + noise.uniform(-1e-3, 1e-3)) for number in range(1, 7)}
        for case, level in levels.items()
    }


def test_a_clear_difference_is_certain_after_the_fewest_pairs():
    (found,) = contrasts(("a", "b"), rates(a=100.0, b=80.0))
    assert (found.verdict, found.judgement.pairs) == (ABVerdict.SLOWER, FEWEST_PAIRS)
    assert found.bounds[0] < 0.8 < found.bounds[1] < 0.81
    assert found.fails_below(0.9) and not found.fails_below(0.5)


def test_cases_that_are_alike_are_told_to_differ_by_little():
    (found,) = contrasts(("a", "b"), rates(a=100.0, b=100.0))
    assert found.verdict is ABVerdict.SAME and found.largest_difference < 0.01


def test_several_comparisons_share_the_probability_of_an_error():
    found = contrasts(("a", "b", "c", "d"), rates(a=100.0, b=80.0, c=80.0, d=80.0))
    assert {each.judgement.error for each in found} == {ERROR / 3}
    assert all(each.verdict is ABVerdict.UNDECIDED for each in found)  # six pairs do for one of them


def test_a_round_in_which_one_side_failed_gives_no_pair():
    measured = rates(a=100.0, b=80.0)
    del measured["b"][3]
    (found,) = contrasts(("a", "b"), measured)
    assert len(found.pairs) == 5 and not found.is_certain and found.bounds is None


def test_a_case_without_any_figure_has_no_judgement():
    (found,) = contrasts(("a", "b"), rates(a=100.0))
    assert found.judgement is None and not found.fails_below(1.0)


@pytest.mark.parametrize("seed", range(5))
def test_noise_that_both_share_decides_nothing_wrongly(seed):
    noise = random.Random(seed)
    measured = {case: {n: 100 * noise.lognormvariate(0, 0.05) for n in range(1, 21)} for case in ("a", "b")}
    (found,) = contrasts(("a", "b"), measured)
    assert found.verdict in (ABVerdict.UNDECIDED, ABVerdict.SAME)
    assert found.bounds[0] < 1 < found.bounds[1]
