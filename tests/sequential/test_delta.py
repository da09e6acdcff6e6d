"""Delta debugging: which of the differences make the change."""

from __future__ import annotations

import pytest

from trainmark.measure.bisection import ChangeSide, DeltaDebugging, Subset, nth_decision_error


def debugged(count: int, needed: set[int], broken: set[Subset] = frozenset()) -> tuple[DeltaDebugging, int]:
    """Answer that a subset is bad when it has all that is needed; return the end and the questions."""
    delta, questions = DeltaDebugging(count), 0
    while (subset := delta.next_subset) is not None:
        questions += 1
        side = (
            ChangeSide.SKIPPED
            if subset in broken
            else ChangeSide.BAD
            if needed <= set(subset)
            else ChangeSide.GOOD
        )
        delta = delta.answered(subset, side)
    return delta, questions


def test_each_of_twelve_differences_is_named_within_eight_questions():
    for culprit in range(12):
        delta, questions = debugged(12, {culprit})
        assert delta.culprits == (culprit,)
        assert questions <= 8


def test_two_differences_that_only_act_together_are_both_named():
    for first in range(8):
        for second in range(first + 1, 8):
            assert debugged(8, {first, second})[0].culprits == (first, second)


def test_if_every_difference_is_needed_none_is_left_out():
    assert debugged(5, set(range(5)))[0].culprits == (0, 1, 2, 3, 4)


def test_a_single_difference_needs_no_question():
    delta, questions = debugged(1, {0})
    assert (delta.culprits, questions) == ((0,), 0)


def test_a_subset_that_does_not_run_is_gone_round():
    assert debugged(4, {3}, broken={(2, 3)})[0].culprits == (3,)


def test_what_could_not_be_judged_within_the_culprits_is_told():
    delta, _ = debugged(2, {1}, broken={(1,)})
    assert delta.culprits == (0, 1)
    assert delta.unresolved == ((1,),)


def test_no_difference_is_refused():
    with pytest.raises(ValueError, match="no difference"):
        DeltaDebugging(0)


def test_the_errors_of_any_number_of_decisions_stay_within_the_budget():
    spent = sum(nth_decision_error(0.04, number) for number in range(1, 10_000))
    assert 0.0399 < spent <= 0.04
