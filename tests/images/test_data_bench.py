"""`trainmark data bench`: what is measured, what is absent and how to get it."""

from __future__ import annotations

import json

import pytest
from coordinate_set import make

from trainmark.workloads.images import jpeg

QUICK = ("--seconds", "0.2", "--rounds", "2", "--workers", "1", "--batch", "8", "--image-size", "32")


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    return make(tmp_path_factory.mktemp("bench") / "pictures", 64, 8)


def test_loaders_are_timed_side_by_side_and_the_absent_say_how_to_get_them(trainmark, pictures):
    result = trainmark(
        "data", "bench", str(pictures), *QUICK, "--loader", "host-pillow", "--loader", "mxnet", "--json"
    )
    assert result.code == 0
    document = json.loads(result.out)
    pillow, mxnet = document["loaders"]
    assert len(pillow["rounds"]) == 2
    rate = pillow["images_per_second_per_core"]
    assert 0 < rate["low"] <= rate["median"] <= rate["high"]
    assert "--convert" in mxnet["reason"]
    assert document["fastest"] == "host-pillow"


def test_the_table_names_loader_rate_and_rate_for_each_core(trainmark, pictures):
    try:
        jpeg.codec("native")
    except jpeg.CodecMissing as error:
        pytest.skip(str(error))
    result = trainmark("data", "bench", str(pictures), *QUICK, "--loader", "host", "--loader", "paddle")
    assert result.code == 0
    assert "img/s a core" in result.out
    assert "native decoder" in result.out
    assert "trainmark frameworks install paddle" in result.out


def test_a_framework_that_lies_beside_trainmark_is_timed_and_not_offered_again(trainmark, pictures):
    pytest.importorskip("torch", reason="PyTorch is not installed; trainmark frameworks install pytorch")
    result = trainmark("data", "bench", str(pictures), *QUICK, "--loader", "pytorch", "--json")
    (pytorch,) = json.loads(result.out)["loaders"]
    assert (pytorch["reason"], len(pytorch["rounds"])) == (None, 2)


def test_a_framework_that_cannot_be_installed_here_is_not_offered(trainmark, pictures, tmp_path, monkeypatch):
    (tmp_path / "paddle.txt").write_text("# unavailable: Paddle has no wheel here\n")
    monkeypatch.setenv("TRAINMARK_LOCKS", str(tmp_path))
    result = trainmark("data", "bench", str(pictures), *QUICK, "--loader", "paddle")
    assert "paddle is not installed; Paddle has no wheel here" in result.out
    assert "frameworks install" not in result.out


def test_a_set_smaller_than_a_batch_is_bad_input(trainmark, pictures):
    result = trainmark("data", "bench", str(pictures), "--batch", "100", "--loader", "host-pillow")
    assert (result.code, result.out) == (2, "")
    assert "has 64 training images, fewer than a batch of 100; lower --batch" in result.err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nowhere"], "nowhere does not exist"),
        (["."], "has no dataset.json"),
        (["{set}", "--loader", "hots"], "there is no loader 'hots'"),
        (["{set}", "--python", "dali"], "LOADER=PYTHON"),
        (["{set}", "--python", "dali=nothing"], "no interpreter nothing"),
    ],
)
def test_bad_input_is_one_sentence(trainmark, pictures, words, sentence):
    result = trainmark("data", "bench", *[word.format(set=pictures) for word in words])
    assert result.code == 2
    assert sentence in result.err
    assert "Traceback" not in result.err
