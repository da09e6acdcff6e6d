"""Which batch is tried next, and what the tries say of the memory: pure functions against an oracle."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmark.measure.fit import (
    FitAttempt,
    first_failure,
    largest_fitting,
    memory_line,
    memory_prediction,
    next_batch,
)

steps = st.integers(1, 64)
limits = st.integers(0, 20_000)


def searched(fits, step, most=None, known=()):
    tries = list(known)
    while (batch := next_batch(tries, step, most)) is not None:
        assert batch not in [each.batch for each in tries], "the same batch is tried twice"
        assert batch % step == 0 and batch > 0
        assert most is None or batch <= most
        tries.append(FitAttempt(batch, fits(batch)))
    return tries


@given(limits, steps)
def test_the_search_finds_the_largest_multiple_that_fits(limit, step):
    tries = searched(lambda batch: batch <= limit, step)
    assert largest_fitting(tries, step) == (limit // step * step or None)
    assert first_failure(tries, step) == limit // step * step + step


@given(limits, steps)
def test_it_takes_about_two_tries_for_each_doubling(limit, step):
    tries = searched(lambda batch: batch <= limit, step)
    assert len(tries) <= 2 * math.log2(limit // step + 1) + 2


@given(limits, steps, st.integers(1, 20_000))
def test_it_never_goes_beyond_the_most_that_was_asked_for(limit, step, more):
    most = step + more - 1
    tries = searched(lambda batch: batch <= limit, step, most)
    assert largest_fitting(tries, step) == (min(limit, most) // step * step or None)


@given(limits, steps, st.data())
def test_a_search_goes_on_from_what_is_known_and_comes_to_the_same_end(limit, step, data):
    whole = searched(lambda batch: batch <= limit, step)
    known = data.draw(st.lists(st.sampled_from(whole), unique=True))
    tries = searched(lambda batch: batch <= limit, step, known=known)
    assert largest_fitting(tries, step) == largest_fitting(whole, step)


@given(st.sets(st.integers(1, 300)), steps)
def test_it_ends_and_names_a_batch_that_was_seen_to_fit_even_where_larger_ones_fit_again(fitting, step):
    tries = searched(lambda batch: batch in fitting, step)
    largest_batch = largest_fitting(tries, step)
    assert largest_batch is None or largest_batch in fitting
    assert first_failure(tries, step) == (largest_batch or 0) + step


def test_tries_of_another_step_do_not_count():
    known = [FitAttempt(10, True), FitAttempt(50, False)]
    assert next_batch(known, 32) == 32


@given(st.floats(1e8, 1e10), st.floats(1e6, 1e8), st.sets(st.integers(1, 100), min_size=2, max_size=12))
def test_the_line_finds_the_fixed_cost_and_the_cost_of_an_image(fixed, per_image, batches):
    tries = [FitAttempt(batch, True, round(fixed + per_image * batch)) for batch in batches]
    line = memory_line(tries)
    assert line.per_image == pytest.approx(per_image, rel=1e-5)
    assert line.fixed == pytest.approx(fixed, rel=1e-4)
    # Rounding to bytes is half a byte off here and in the fixed cost, and turns the line a little.
    turned = abs(line.per_image - per_image) * max(batches)
    assert line.residual <= 1.01 + 2 * turned


def test_one_batch_with_a_large_workspace_does_not_move_the_line():
    tries = [FitAttempt(batch, True, 1000 + 10 * batch) for batch in (32, 64, 128, 256, 192)]
    odd = [FitAttempt(96, True, 5000), *tries]
    line = memory_line(odd)
    assert (line.fixed, line.per_image, line.residual) == (1000, 10, 5000 - 1000 - 960)


def test_one_peak_gives_no_line_and_what_did_not_fit_gives_no_peak():
    assert (
        memory_line([FitAttempt(32, True, 1000), FitAttempt(64, False, 2000), FitAttempt(16, True)]) is None
    )


def test_the_smaller_batches_are_held_against_the_largest():
    tries = [
        FitAttempt(32, True, 1320),
        FitAttempt(64, True, 1640),
        FitAttempt(128, True, 2200),
        FitAttempt(256, False),
    ]
    foretold = memory_prediction(tries)
    assert (foretold.batch, foretold.predicted, foretold.measured) == (128, 2280, 2200)
    assert foretold.error == pytest.approx(80 / 2200)


def test_two_batches_foretell_nothing():
    assert memory_prediction([FitAttempt(32, True, 1320), FitAttempt(64, True, 1640)]) is None
