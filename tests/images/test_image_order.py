"""Which images make which batch, and which part of each is taken."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainmark.workloads.common import chance
from trainmark.workloads.images import sampling

COUNTS, BATCHES, RANKS = st.integers(1, 300), st.integers(1, 20), st.integers(1, 6)
SIDES = st.integers(1, 3000)


@given(COUNTS, st.integers(0, 2**40), st.integers(0, 200))
def test_an_epoch_has_every_image_once_and_follows_from_its_numbers(count, seed, epoch):
    images = sampling.epoch_order(count, seed, epoch)
    assert sorted(images) == list(range(count))
    assert np.array_equal(images, sampling.epoch_order(count, seed, epoch))


def test_epochs_and_seeds_have_other_orders():
    orders = {tuple(sampling.epoch_order(50, seed, epoch)) for seed in range(5) for epoch in range(5)}
    assert len(orders) == 25


def test_the_order_is_the_same_in_every_version_of_numpy():
    assert sampling.epoch_order(8, 1, 2).tolist() == [2, 7, 3, 1, 5, 6, 0, 4]


@given(COUNTS, BATCHES, RANKS)
def test_ranks_train_on_as_many_full_batches_and_no_image_twice(count, batch, world_size):
    shares = [sampling.training_share(count, batch, rank, world_size) for rank in range(world_size)]
    assert {share.shape for share in shares} == {(count // (batch * world_size), batch)}
    places = np.concatenate([share.reshape(-1) for share in shares])
    assert len(set(places.tolist())) == len(places)


@given(BATCHES, RANKS)
def test_a_global_batch_has_the_same_images_however_many_ranks_share_it(batch, world_size):
    alone = sampling.training_share(500, batch * world_size, 0, 1)
    shared = [sampling.training_share(500, batch, rank, world_size) for rank in range(world_size)]
    assert np.array_equal(alone, np.concatenate(shared, axis=1))


@given(COUNTS, BATCHES, RANKS)
def test_every_image_is_evaluated_exactly_once_over_all_ranks(count, batch, world_size):
    shares = [sampling.evaluation_share(count, rank, world_size) for rank in range(world_size)]
    assert sorted(np.concatenate(shares)) == list(range(count))
    room = sampling.evaluation_batches(count, batch, world_size) * batch
    assert all(len(share) <= room for share in shares)


@given(SIDES, SIDES, st.integers(0, 100), st.integers(0, 5), st.integers(0, 10**6))
def test_a_training_window_lies_inside_the_image_with_an_allowed_shape(width, height, seed, epoch, index):
    window = sampling.training_window(width, height, seed, epoch, index)
    assert 0 <= window.left <= width - window.width
    assert 0 <= window.top <= height - window.height
    assert min(window.width, window.height) >= 1
    if min(window.width, window.height) > 50:
        assert 0.73 < window.width / window.height < 1.37
    assert window == sampling.training_window(width, height, seed, epoch, index)


@given(SIDES, SIDES, st.integers(8, 512))
def test_an_evaluation_window_lies_inside_the_image(width, height, size):
    window = sampling.evaluation_window(width, height, size)
    assert window.left >= 0 and window.top >= 0
    assert window.left + window.width <= width * (1 + 1e-9)
    assert window.top + window.height <= height * (1 + 1e-9)


@pytest.mark.parametrize(("width", "height"), [(500, 375), (375, 500), (512, 512)])
def test_evaluation_takes_seven_eighths_of_the_shorter_side_from_the_centre(width, height):
    window = sampling.evaluation_window(width, height, 224)
    short = min(width, height)
    assert math.isclose(min(window.width, window.height), short * 224 / 256, rel_tol=0.01)
    assert math.isclose(window.left + window.width / 2, width / 2, abs_tol=2)
    assert math.isclose(window.top + window.height / 2, height / 2, abs_tol=2)


def test_a_strip_gets_the_centre_once_ten_attempts_have_failed():
    window = sampling.training_window(1000, 10, 0, 0, 0)
    assert (window.width, window.height, window.top) == (13, 10, 0)
    assert abs(window.left + 6.5 - 500) <= 1


def test_area_is_uniform_and_aspect_in_its_logarithm():
    """A square bears nearly every pair: what is drawn is what is taken."""
    from scipy.stats import kstest

    windows = [sampling.training_window(4000, 4000, 7, 0, index) for index in range(4000)]
    small = [each for each in windows if each.width * each.height < 0.7 * 4000**2]
    areas = [each.width * each.height / 4000**2 for each in small]
    aspects = [math.log(each.width / each.height) for each in small]
    assert kstest(areas, "uniform", args=(0.08, 0.62)).pvalue > 1e-3
    assert kstest(aspects, "uniform", args=(-math.log(4 / 3), 2 * math.log(4 / 3))).pvalue > 1e-3
    assert abs(np.mean([each.flip for each in windows]) - 0.5) < 4 * 0.5 / math.sqrt(4000)


def test_the_numbers_of_neighbouring_keys_do_not_go_together():
    draws = np.array([next(chance.uniforms(chance.key(0, 0, index, 1))) for index in range(5000)])
    assert abs(np.corrcoef(draws[:-1], draws[1:])[0, 1]) < 4 / math.sqrt(5000)
    assert abs(draws.mean() - 0.5) < 4 * math.sqrt(1 / 12 / 5000)
