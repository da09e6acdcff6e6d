from itertools import pairwise

import pytest

from trainmark.view.chart.axis import counts, linear, logarithmic, rows


def names(axis):
    return [name for _, name in axis.ticks]


def test_a_linear_axis_begins_at_zero_and_ends_above_the_highest():
    axis = linear([3.0, 9.0])
    assert axis.low == 0 and axis.high > 9
    assert names(axis) == ["0", "2", "4", "6", "8"]
    assert not axis.cut


def test_values_of_both_signs_have_zero_among_the_ticks():
    axis = linear([-1.2, 0.9], suffix=" %")
    assert axis.low < -1.2 and axis.high > 0.9
    assert "0 %" in names(axis)
    assert not axis.cut


@pytest.mark.parametrize(("low", "high"), [(38.2, 44.9), (0.0, 1e-7), (1e6, 1.0001e6), (-5.0, 0.0)])
def test_ticks_are_few_round_and_inside(low, high):
    axis = linear([], bounds=(low, high))
    assert 2 <= len(axis.ticks) <= 7
    assert all(low <= tick <= high for tick, _ in axis.ticks)
    assert len(set(names(axis))) == len(axis.ticks)


def test_an_axis_that_leaves_out_zero_is_cut():
    assert linear([], bounds=(38.0, 44.0)).cut
    assert not logarithmic([38.0, 44.0]).cut
    assert not rows(["a", "b"]).cut


def test_equal_steps_of_a_logarithmic_axis_are_equal_factors():
    axis = logarithmic([1, 10_000])
    places = [axis.place(value) for value in (1, 10, 100, 1000)]
    steps = [after - before for before, after in pairwise(places)]
    assert steps == pytest.approx([steps[0]] * 3)


@pytest.mark.parametrize("values", [[40, 21_300], [1e-3, 1e12], [300, 310], [5]])
def test_a_logarithmic_axis_has_two_to_eight_ticks(values):
    axis = logarithmic(values)
    assert 2 <= len(axis.ticks) <= 8
    assert all(axis.low <= tick <= axis.high for tick, _ in axis.ticks)


def test_what_a_logarithm_cannot_hold_has_no_place():
    axis = logarithmic([1, 10])
    assert axis.place(0) is None and axis.place(-1) is None and axis.place(float("nan")) is None


def test_counts_that_stand_close_give_way_to_the_larger():
    assert names(counts([1, 2, 4, 8])) == ["1", "2", "4", "8"]
    assert names(counts([1, 2, 4, 512])) == ["4", "512"]
    assert names(counts([1, 2, 4, 512], log=True)) == ["1", "2", "4", "512"]


def test_the_first_row_is_at_the_top():
    axis = rows(["first", "second"])
    assert axis.place(0) == 0.75 and axis.place(1) == 0.25
