from __future__ import annotations

import pytest

from trainmark.workloads.resnet50.shared import recipe

STEPS_AN_EPOCH = recipe.TRAINING_IMAGES / 256


def last_step_of_epoch(epoch: int, batch: int = 256) -> int:
    return round(epoch * recipe.TRAINING_IMAGES / batch) - 1


def test_the_rate_peaks_at_0_256_after_eight_epochs_at_batch_256():
    rates = [recipe.learning_rate(last_step_of_epoch(epoch), 256) for epoch in range(1, 91)]
    assert max(rates) == rates[7] == pytest.approx(0.256, rel=1e-4)


def test_the_rate_rises_in_equal_steps_from_the_first_one():
    one = recipe.learning_rate(0, 256)
    assert one == pytest.approx(0.256 / (8 * STEPS_AN_EPOCH))
    assert recipe.learning_rate(999, 256) == pytest.approx(1000 * one)


def test_the_rate_is_halved_half_way_down_the_cosine():
    assert recipe.learning_rate(last_step_of_epoch(49), 256) == pytest.approx(0.128, rel=1e-3)


def test_the_rate_ends_at_zero_and_stays_there():
    end = last_step_of_epoch(90)
    assert recipe.learning_rate(end, 256) == pytest.approx(0, abs=1e-9)
    assert recipe.learning_rate(end + 10_000, 256) == 0


@pytest.mark.parametrize("epoch", [1, 8, 30, 80])
def test_at_the_same_epoch_eight_times_the_batch_has_eight_times_the_rate(epoch):
    small = recipe.learning_rate(last_step_of_epoch(epoch, 256), 256)
    large = recipe.learning_rate(last_step_of_epoch(epoch, 2048), 2048)
    assert large == pytest.approx(8 * small, rel=2e-3)


def test_an_image_of_224_costs_24_5_gflop():
    assert recipe.flops_per_image(224) == pytest.approx(24.5e9, rel=0.005)


def test_the_convolutions_and_the_classifier_hold_all_weights_but_those_of_batch_norm():
    layers = list(recipe.convolutions(224))
    weights = sum(inputs * outputs * kernel**2 for inputs, outputs, kernel, _ in layers)
    batch_norm = sum(2 * outputs for _, outputs, _, _ in layers[:-1])
    assert weights + batch_norm + recipe.CLASSES == recipe.PARAMETERS
