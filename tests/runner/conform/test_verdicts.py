from __future__ import annotations

import copy
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from trainmark.base.typed_json import decode
from trainmark.cli.main import trainmark
from trainmark.runner import conformance
from trainmark.runner.conformance import ConformanceCheck, ConformanceVerdict, code_digest
from trainmark.workloads import registry
from trainmark.workloads.common.chance import SKETCHES
from trainmark.workloads.resnet50.shared import recipe, reference, tensors
from trainmark.workloads.resnet50.shared.reference import compare, rank_deviations, statistics_convention

DIGEST = code_digest(registry.find("resnet50"), "pytorch")


@pytest.fixture(scope="module")
def right():
    """What a framework without any rounding would show."""
    start = {name: tensors.sketch(name, value) for name, value in tensors.initial_weights().items()}
    shapes = {name: list(shape) for name, shape in tensors.shapes().items()}
    known = {"start": start, "shapes": shapes, "parameters": recipe.PARAMETERS}
    return {**reference.expected(1)[0], **known}


@pytest.fixture
def shown(right):
    return copy.deepcopy(right)


def wrong(shown) -> list[str]:
    return [str(difference) for difference in rank_deviations(shown, reference.expected(1)[0])]


def verdict(*checks: ConformanceCheck, version: str = "1.0", code: str | None = None) -> ConformanceVerdict:
    return ConformanceVerdict("pytorch", version, "/opt/python", "cpu", code or DIGEST, "today", checks)


def test_the_shipped_reference_is_what_its_program_computes(monkeypatch):
    """Of the first step; PyTorch takes all five, full size by the reference, small by its program."""
    monkeypatch.setattr(tensors, "STEPS", 1)
    computed, shipped = reference.observe(1)[0], reference.expected(1)[0]
    assert computed["losses"] == pytest.approx(shipped["losses"][:1], rel=1e-8)
    assert computed["gradient_norms"] == pytest.approx(shipped["gradient_norms"], rel=1e-6)
    for name, sketch in shipped["gradients"].items():
        size = float(np.abs(sketch).max())
        assert computed["gradients"][name] == pytest.approx(sketch, rel=1e-6, abs=1e-6 * size), name


def test_the_reference_agrees_with_itself(shown):
    assert wrong(shown) == []


def test_a_loss_that_is_not_a_number_differs(shown):
    shown["losses"][4] = math.nan
    assert [words.split(" is")[0] for words in wrong(shown)] == ["the loss of step 5"]


def test_a_loss_that_is_off_by_a_hundred_thousandth_differs(shown):
    shown["losses"][2] *= 1 + 1e-5
    assert [words.split(" is")[0] for words in wrong(shown)] == ["the loss of step 3"]


def test_a_tensor_that_moved_a_twentieth_too_far_differs(shown):
    name = "blocks.3.conv2.weight"
    shown["moved"][name] = [1.05 * each for each in shown["moved"][name]]
    assert [words.split(" is")[0] for words in wrong(shown)] == [f"{name} after the last step"]


def test_a_check_that_was_refused_has_not_passed():
    assert not ConformanceCheck(1, "NCHW", refused="no.").passed


def test_the_gravest_difference_comes_first(shown):
    shown["losses"][0] *= 1 + 1e-5
    shown["losses"][1] *= 2
    assert wrong(shown)[0].startswith("the loss of step 2 is off by 7.1 where")


def test_another_count_of_parameters_is_told_in_figures(shown):
    shown["parameters"] = 25_583_592
    assert wrong(shown) == ["the model has 25,583,592 parameters instead of 25,557,032"]


def test_a_tensor_of_another_shape_is_named(shown):
    shown["shapes"]["stem.conv.weight"] = [64, 3, 3, 3]
    assert wrong(shown) == ["stem.conv.weight has the shape [64, 3, 3, 3] instead of [64, 3, 7, 7]"]


def test_weights_that_did_not_arrive_as_given_are_named(shown):
    shown["start"]["classifier.bias"] = [0.0] * SKETCHES
    assert wrong(shown)[0].startswith("classifier.bias as it was loaded is off by")


def test_either_variance_is_accepted_and_told(shown):
    expected = reference.expected(1)[0]
    assert statistics_convention(shown, expected) == "population"
    shown["statistics"] = expected["sample_statistics"]
    assert statistics_convention(shown, expected) == "sample"
    assert wrong(shown) == []


def test_one_layer_that_remembers_another_variance_than_the_rest_differs(shown):
    name = "blocks.15.norm2.variance"
    shown["statistics"][name] = reference.expected(1)[0]["sample_statistics"][name]
    assert wrong(shown)[0].startswith(f"the running {name} is off by")


def test_a_sketch_estimates_the_norm_of_a_difference():
    random = np.random.RandomState(0)
    one, other = random.standard_normal((2, 100_000))
    apart = np.subtract(tensors.sketch("x", one), tensors.sketch("x", other))
    assert np.sqrt(np.mean(apart**2)) == pytest.approx(np.linalg.norm(one - other), rel=0.6)


def test_what_is_only_refused_is_not_conformant():
    assert not verdict(ConformanceCheck(1, "NCHW", refused="no.")).conformant
    assert verdict(ConformanceCheck(1, "NCHW", refused="no."), ConformanceCheck(1, "NHWC")).conformant


def test_a_failure_is_not_conformant_and_says_why():
    outcome = verdict(ConformanceCheck(1, "NCHW"), ConformanceCheck(2, "NCHW", failed="rank 1 vanished"))
    assert not outcome.conformant
    assert outcome.differs == ["2 ranks, NCHW: rank 1 vanished"]


def test_a_check_names_the_rank_that_differs(right):
    ranks = [copy.deepcopy({**right, **expected}) for expected in reference.expected(2)]
    ranks[1]["losses"][2] = 0.0
    (difference,) = compare(ranks).differs
    assert difference.startswith("rank 1: the loss of step 3")


def test_a_verdict_is_found_again_for_the_same_program_only(tmp_path, monkeypatch):
    monkeypatch.setenv("TRAINMARK_HOME", str(tmp_path))
    recorded = verdict(ConformanceCheck(1, "NCHW", differs=("a", "b")))
    conformance.keep(recorded)
    assert conformance.find("resnet50", "pytorch", "1.0", "/opt/python", "cpu", DIGEST) == recorded
    assert conformance.find("resnet50", "pytorch", "1.1", "/opt/python", "cpu", DIGEST) is None
    assert conformance.find("another", "pytorch", "1.0", "/opt/python", "cpu", DIGEST) is None
    assert conformance.find("resnet50", "pytorch", "1.0", "/opt/python", "cuda", DIGEST) is None
    assert conformance.find("resnet50", "pytorch", "1.0", "/opt/python", "cpu", "another") is None


def test_a_verdict_is_about_the_folders_that_a_family_shares_too():
    family = registry.find("resnet50")
    sharing = replace(family, workload=replace(family.workload, shares=("images",)))
    assert code_digest(sharing, "pytorch") != DIGEST


def test_a_later_verdict_takes_the_place_of_an_earlier_one(tmp_path, monkeypatch):
    monkeypatch.setenv("TRAINMARK_HOME", str(tmp_path))
    conformance.keep(verdict(ConformanceCheck(1, "NCHW", failed="no")))
    conformance.keep(verdict(ConformanceCheck(1, "NCHW"), version="2.0"))
    conformance.keep(verdict(ConformanceCheck(1, "NCHW")))
    assert len(json.loads((tmp_path / "conformance/pytorch.json").read_text())) == 2
    latest = conformance.find("resnet50", "pytorch", "1.0", "/opt/python", "cpu", DIGEST)
    assert latest is not None and latest.conformant


def test_a_record_that_cannot_be_read_counts_as_not_checked(tmp_path, monkeypatch):
    monkeypatch.setenv("TRAINMARK_HOME", str(tmp_path))
    path = conformance.keep(verdict(ConformanceCheck(1, "NCHW")))
    path.write_text("[{")
    assert conformance.find("resnet50", "pytorch", "1.0", "/opt/python", "cpu", DIGEST) is None


def test_a_verdict_survives_its_own_json():
    original = verdict(
        ConformanceCheck(
            2, "NHWC", differs=("a",), largest_loss_error=0.5, observations=(("running_variance", "sample"),)
        )
    )
    assert decode(ConformanceVerdict, json.loads(json.dumps(original.to_dict()))) == original


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["pytorhc"], "there is no framework 'pytorhc'; did you mean 'pytorch'?"),
        (["paddle"], "paddle is not installed; `trainmark frameworks install paddle` installs it."),
        (["--python", "python3"], "name the framework that --python has"),
        (["resnet50", "--python", "python3"], "name the framework that --python has"),
        (["resnet50", "pytorhc"], "there is no framework 'pytorhc'; did you mean 'pytorch'?"),
        (["gpt2", "--workload", "resnet50"], "gpt2 and --workload resnet50 are two workloads; name one."),
        (["resnet50", "--workload", "./own"], "resnet50 and --workload ./own are two workloads; name one."),
    ],
)
def test_what_cannot_be_checked_is_one_sentence(words, sentence):
    done = CliRunner().invoke(trainmark, ["conform", *words])
    assert sentence in str(done.exception)
