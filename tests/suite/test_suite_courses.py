"""Images, recipes, epochs and finish lines in a suite."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainmark.runner.command import command_of, workload_arguments
from trainmark.suite import load
from trainmark.suite.model import Case, SuiteError
from trainmark.suite.plan import fastest_choices


def only(text: str) -> Case:
    (case,) = load.parse(text, "suite.yaml").cases
    return case


def test_a_dataset_means_images_unless_the_suite_says_otherwise():
    assert only("dataset: pictures").data == "images"
    assert only("dataset: pictures").loader == "host"
    assert only("dataset: pictures\ndata: synthetic").data == "synthetic"
    assert only("dataset: pictures\ndata: synthetic").loader is None
    assert only("batch_per_device: 4").data == "synthetic"


def test_a_finish_line_is_a_share_or_a_percentage():
    for written in ("0.761", "76.1%", "'76.1 %'"):
        course = only(f"dataset: pictures\nuntil: {{top1: {written}}}").course
        assert course is not None
        assert course.until == (("top1", pytest.approx(0.761)),)
        assert course.target == "top1=0.761"


@pytest.mark.parametrize("written", ["0", "1.2", "-3%", "soon", "true"])
def test_a_finish_line_that_nobody_can_cross_is_refused(written):
    with pytest.raises(SuiteError, match=r"suite\.yaml:2: 'until' 'top1' takes a share such as 0\.761"):
        only(f"dataset: pictures\nuntil: {{top1: {written}}}")


def test_epochs_are_for_images_and_checkpoints_for_epochs():
    with pytest.raises(SuiteError, match="epochs and finish lines need data to learn from; say data: images"):
        only("epochs: 3")
    with pytest.raises(SuiteError, match="a command decides itself how long it trains"):
        only("epochs: 3\nworkload: {command: 'true'}\ndataset: x")
    with pytest.raises(SuiteError, match="checkpoints are for training with 'epochs' or 'until'"):
        only("dataset: x\ncheckpoint: {steps: 5}")


def test_the_dataset_lies_beside_the_suite_that_names_it(tmp_path):
    (tmp_path / "suite.yaml").write_text("dataset: pictures\nrecipe: mine.json\nepochs: 2")
    (case,) = load.load(str(tmp_path / "suite.yaml")).cases
    assert case.dataset == str(tmp_path / "pictures")
    assert case.recipe == str(tmp_path / "mine.json")


def test_cases_that_differ_in_what_they_train_for_have_different_names():
    text = "dataset: pictures\nloader: [host, own]\nrecipe: [ngc-90, ngc-250]\nuntil: {top1: 0.5}"
    slugs = [case.slug for case in load.parse(text, "suite.yaml").cases]
    assert len(set(slugs)) == 4
    assert "pytorch-fp32-b32-1n1g-images-own-ngc-250-top1-0.5" in slugs


def test_the_command_of_a_course_has_its_line_its_seed_and_its_place():
    case = only("dataset: /pictures\nuntil: {top1: 0.5, top5: 0.8}\ncheckpoint: {steps: 7, keep: 3}")
    words = command_of(case, Path("code"), Path("/runs/mine/trials/slug/.02.part"), seed=5)
    line = " ".join(words)
    assert "--until top1=0.5 --until top5=0.8" in line
    assert line.endswith(
        "--seed 5 --checkpoints /runs/mine/trials/slug/.02.part/checkpoints "
        "--checkpoint-steps 7 --checkpoints-kept 3"
    )
    assert "--steps" not in words


def test_checkpoints_on_a_shared_disk_go_by_run_case_and_repeat():
    case = only("dataset: /pictures\nepochs: 2\ncheckpoint: {folder: /shared}")
    words = command_of(case, Path("code"), Path("/runs/mine/trials/slug/.02.part"))
    assert words[words.index("--checkpoints") + 1] == "/shared/mine/slug/02"


def test_a_plain_case_has_the_command_line_that_it_always_had():
    assert workload_arguments(fastest_choices(only("batch_per_device: 4\ndevice: cpu"))[0]) == (
        *("--device", "cpu", "--batch", "4", "--precision", "fp32", "--layout", "NCHW"),
        *("--data", "synthetic", "--image-size", "224", "--steps", "120"),
    )
