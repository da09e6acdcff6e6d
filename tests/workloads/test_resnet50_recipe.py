from __future__ import annotations

import pytest

from trainmark.workloads.resnet50.shared import recipe

STEPS_AN_EPOCH = recipe.TRAINING_IMAGES / 256


def last_step_of_epoch(epoch: int, batch: int = 256) -> int:
    return round(epoch * recipe.TRAINING_IMAGES / batch) - 1


def test_the_rate_peaks_at_0_256_after_eight_epochs_at_batch_256():
    rates = [recipe.STANDARD.learning_rate(last_step_of_epoch(epoch), 256) for epoch in range(1, 91)]
    assert max(rates) == rates[7] == pytest.approx(0.256, rel=1e-4)


def test_the_rate_rises_in_equal_steps_from_the_first_one():
    one = recipe.STANDARD.learning_rate(0, 256)
    assert one == pytest.approx(0.256 / (8 * STEPS_AN_EPOCH))
    assert recipe.STANDARD.learning_rate(999, 256) == pytest.approx(1000 * one)


def test_the_rate_is_halved_half_way_down_the_cosine():
    assert recipe.STANDARD.learning_rate(last_step_of_epoch(49), 256) == pytest.approx(0.128, rel=1e-3)


def test_the_rate_ends_at_zero_and_stays_there():
    end = last_step_of_epoch(90)
    assert recipe.STANDARD.learning_rate(end, 256) == pytest.approx(0, abs=1e-9)
    assert recipe.STANDARD.learning_rate(end + 10_000, 256) == 0


@pytest.mark.parametrize("epoch", [1, 8, 30, 80])
def test_at_the_same_epoch_eight_times_the_batch_has_eight_times_the_rate(epoch):
    small = recipe.STANDARD.learning_rate(last_step_of_epoch(epoch, 256), 256)
    large = recipe.STANDARD.learning_rate(last_step_of_epoch(epoch, 2048), 2048)
    assert large == pytest.approx(8 * small, rel=2e-3)


def test_an_image_of_224_costs_24_5_gflop():
    assert recipe.flops_per_image(224) == pytest.approx(24.5e9, rel=0.005)


def test_the_convolutions_and_the_classifier_hold_all_weights_but_those_of_batch_norm():
    layers = list(recipe.convolutions(224))
    weights = sum(inputs * outputs * kernel**2 for inputs, outputs, kernel, _ in layers)
    batch_norm = sum(2 * outputs for _, outputs, _, _ in layers[:-1])
    assert weights + batch_norm + recipe.CLASSES == recipe.PARAMETERS


def test_every_recipe_of_ours_is_one_and_says_where_it_comes_from():
    assert set(recipe.names()) >= {"ai-rank", "ai-rank-2021", "mlperf", "ngc-90", "ngc-250"}
    for name in recipe.names():
        entry = recipe.find(name, 3264 if name == "mlperf" else 256)
        assert entry.name == name
        assert entry.about and entry.source


def test_ai_rank_has_the_target_of_the_submission_and_that_of_the_later_rules():
    targets = [recipe.find(name, 256).target for name in ("ai-rank", "ai-rank-2021")]
    assert targets == [{"top1": 0.761}, {"top1": 0.759}]
    ai_rank = recipe.find("ai-rank", 256)
    assert ai_rank.departures(120, 256, 256, 128.0) == []
    assert ai_rank.departures(20, 64, 16384, "dynamic") == [
        "20 epochs, not 120",
        "its rate grows with the batch, which is known to hold to 8192, not to 16384",
        "batch 64 a device, not 256",
        "loss scale dynamic, not 128",
    ]


def test_mlperf_is_defined_at_its_reference_batches_and_refuses_others():
    mlperf = recipe.find("mlperf", 8192)
    assert (mlperf.optimizer, mlperf.rate, mlperf.warmup_epochs, mlperf.epochs) == ("lars", 17, 5, 44)
    assert mlperf.target == {"top1": 0.759}
    with pytest.raises(recipe.RecipeError, match=r"1632, 3264.*and this is 512"):
        recipe.find("mlperf", 512)


def test_a_polynomial_rate_peaks_after_its_warm_up_and_ends_where_it_says():
    mlperf = recipe.find("mlperf", 3264)
    rates = [mlperf.learning_rate(last_step_of_epoch(epoch, 3264), 3264) for epoch in range(1, 38)]
    assert max(rates) == rates[1] == pytest.approx(10.5, rel=2e-3)
    half_way = (37 + 2) / 2
    assert mlperf.learning_rate(last_step_of_epoch(half_way, 3264), 3264) == pytest.approx(10.5 / 4, rel=1e-2)
    assert rates[-1] == pytest.approx(0.0001, abs=2e-4)


def test_a_shorter_course_keeps_its_shape():
    whole, short = recipe.STANDARD, recipe.STANDARD.over(9)
    for share in (0.05, 0.1, 0.5, 0.9):
        rates = [
            course.learning_rate(last_step_of_epoch(share * course.epochs), 256) for course in (whole, short)
        ]
        assert rates[0] == pytest.approx(rates[1], rel=2e-3)


def test_a_recipe_that_is_not_there_names_those_that_are():
    with pytest.raises(recipe.RecipeError, match=r"no recipe 'ngc'; there are ai-rank, .*or a path"):
        recipe.find("ngc", 256)


def test_a_file_that_holds_no_recipe_is_refused_in_one_sentence(tmp_path):
    for content in ("", "[]", '{"momentum": 0.9}', '{"no": "such key"}'):
        (tmp_path / "mine.json").write_text(content)
        with pytest.raises(recipe.RecipeError, match="does not hold a recipe"):
            recipe.find(str(tmp_path / "mine.json"), 256)


def test_the_fewest_bytes_of_a_step_are_those_counted_by_hand():
    # At 224: 3 for every input, 5 for every output of a convolution, 2 more for every end of a block.
    inputs = (
        3 * 224**2
        + 56**2 * (64 + 64 + 64 + 64 + 2 * (256 + 64 + 64))
        + (56**2 * (256 + 128) + 28**2 * (128 + 256) + 3 * 28**2 * (512 + 128 + 128))
        + (28**2 * (512 + 256) + 14**2 * (256 + 512) + 5 * 14**2 * (1024 + 256 + 256))
        + (14**2 * (1024 + 512) + 7**2 * (512 + 1024) + 2 * 7**2 * (2048 + 512 + 512))
        + 2048
    )
    ends = 56**2 * 256 * 3 + 28**2 * 512 * 4 + 14**2 * 1024 * 6 + 7**2 * 2048 * 3
    shortcuts = 56**2 * 256 + 28**2 * 512 + 14**2 * 1024 + 7**2 * 2048
    narrow = 56**2 * 64 * 6 + 56**2 * 128 + 28**2 * 128 * 7 + 28**2 * 256 + 14**2 * 256 * 11 + 14**2 * 512
    narrow += 7**2 * 512 * 5
    outputs = 112**2 * 64 + ends + shortcuts + narrow + 1000
    assert recipe.bytes_per_image(224, 2) == 2 * (3 * inputs + 5 * outputs + 2 * ends)
