"""The real thing: PyTorch on the CPU, under a cap."""

import json

import pytest
from click.testing import CliRunner

from trainmark.cli.main import trainmark

GIB, MIB = 2**30, 2**20


@pytest.fixture(scope="module")
def record():
    """16 images of 64² take 0.8 GiB, 32 take 1.0."""
    words = ["--device", "cpu", "--image-size", "64", "--step", "16", "--cap", "900MB", "--json"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        done = CliRunner().invoke(trainmark, ["fit", *words])
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)["fits"][0]


def test_pytorch_trains_with_the_batch_that_is_found_and_has_no_memory_for_the_next(record):
    assert (record["largest"], record["does_not_fit"]) == (16, 32)
    assert [(each["batch"], each["fits"]) for each in record["tries"]] == [(16, True), (32, False)]


def test_its_peak_is_that_of_the_process_and_below_the_cap(record):
    assert 500 * MIB < record["peak"] <= record["cap"] == 900 * MIB


def test_what_did_not_fit_says_so_in_words(record):
    assert "more than the memory cap" in record["tries"][1]["detail"]
