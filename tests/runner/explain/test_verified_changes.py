"""What-ifs that are really made: the cases of a suite, their trials in turns, predictions and truth."""

from dataclasses import replace
from pathlib import Path
from statistics import median

import pytest
import yaml

from trainmark.base.errors import UserError
from trainmark.explain.explained_trial import case_situation, parameters_of, settings_of
from trainmark.explain.explanation import Agreement, ClassTime, ExplainedSubject, Explanation, IdleTime
from trainmark.explain.verify import (
    OWN_PROGRAM,
    changed_cases,
    named,
    suite_text,
    verified_seconds,
    verify,
    with_overrides,
)
from trainmark.explain.what_if import record
from trainmark.explain.what_if.changes import predict
from trainmark.explain.what_if.situation import Situation, StepPart, TrainingSettings
from trainmark.suite import load

EXAMPLE = Path(__file__).parents[3] / "examples" / "friedman"
PERCEPTRON = """
workload: .
framework: pytorch
device: cpu
compile: false
cuda_graph: false
width: 16
batch_per_device: 16
threads: 1
repeats: 2
warmup: {steps: 10}
measure: {steps: 60}
"""
RESNET = """
workload: resnet50
framework: pytorch
precision: tf32
layout: NCHW
compile: false
cuda_graph: false
batch_per_device: 64
image_size: 128
device: cuda
"""
PROGRAM = "workload: {command: python train.py, reader: auto}\n"


def only_case(text, folder=None):
    (case,) = load.parse(text, "suite.yaml", folder=folder).cases
    return case


def mostly_waiting(case):
    """A step of 100 µs of which the host takes nine tenths, as a perceptron's is on a CPU."""
    return Situation(
        step=100e-6,
        device="cpu",
        parts=(StepPart("matrix product", 10e-6, 10e-6, 8),),
        idle={"launch": 90e-6},
        settings=settings_of(case),
    )


@pytest.fixture(scope="module")
def verification(tmp_path_factory):
    case = only_case(PERCEPTRON, str(EXAMPLE))
    situation = mostly_waiting(case)
    runs = tmp_path_factory.mktemp("runs")
    return verify(case, situation, predict(situation), runs, name="pairs", repeats=2, folder=str(EXAMPLE))


def test_a_batch_twice_as_large_is_run_and_its_truth_stands_beside_the_prediction(verification):
    (entry,) = verification.entries
    assert (entry.change, entry.trials) == ("batch ×2", 2)
    assert entry.low <= entry.measured <= entry.high
    before, after = (
        [record.figure for record in verification.run.records() if f"-b{batch}-" in record.spec.case]
        for batch in (16, 32)
    )
    a_step = [
        {round(figure.throughput * figure.step_times.mean) for figure in case} for case in (before, after)
    ]
    assert a_step == [{16}, {32}]
    slower = median(figure.throughput for figure in before) / median(figure.throughput for figure in after)
    assert entry.measured == pytest.approx(slower * entry.before, abs=1e-7)  # for as many rows as before


def test_what_no_setting_makes_is_named_with_the_reason(verification):
    assert verification.unverified == {"no Python": "no setting of this workload makes it"}
    by_name = {what_if.name: what_if for what_if in verification.what_ifs}
    assert by_name["no Python"].verified is None
    assert by_name["batch ×2"].verified is not None


def test_the_trials_of_both_cases_take_turns(verification):
    started = {record.started: record.spec.repeat for record in verification.run.records()}
    assert [repeat for _, repeat in sorted(started.items())] == [1, 1, 2, 2]


def test_this_machines_record_keeps_what_was_verified_once(verification, tmp_path, monkeypatch):
    monkeypatch.setenv("TRAINMARK_HOME", str(tmp_path))
    published = len(record.known_record())
    record.append_verified(verification.entries)
    record.append_verified(verification.entries)
    assert len(record.known_record()) == published + 1


def test_nothing_runs_where_no_change_can_be_made(tmp_path):
    case = only_case(PROGRAM)
    situation = replace(mostly_waiting(case), settings=TrainingSettings())
    verification = verify(case, situation, predict(situation), tmp_path)
    assert set(verification.unverified.values()) == {OWN_PROGRAM}
    assert not list(tmp_path.iterdir())


def test_only_the_what_ifs_that_are_named_are_made():
    what_ifs = predict(mostly_waiting(only_case(PERCEPTRON, str(EXAMPLE))))
    assert named(what_ifs, ()) == what_ifs
    assert [what_if.name for what_if in named(what_ifs, ["batch ×2"])] == ["batch ×2"]
    with pytest.raises(UserError, match=r"'bf16' is not predicted for this case, these are: .*batch ×2"):
        named(what_ifs, ["bf16"])


def test_a_suite_of_what_ifs_is_the_case_and_one_change_each():
    case = only_case(RESNET)
    situation = Situation(
        step=0.1,
        device="cuda",
        parts=(
            StepPart("convolution", 0.08, 0.08, 160, layout_copies=0.01),
            StepPart("elementwise", 0.01, 0.01, 300),
        ),
        idle={"launch": 0.01},
        settings=settings_of(case),
    )
    changed, _ = changed_cases(case, situation, predict(situation))
    parsed = load.parse(suite_text([case, *changed.values()], repeats=6), "what-if.yaml").cases
    assert parsed[0] == replace(case, rules=parsed[0].rules)
    differing = {
        name: {
            key
            for key in ("batch_per_device", "layout", "compile", "cuda_graph", "precision")
            if getattr(other, key) != getattr(case, key)
        }
        for name, other in changed.items()
    }
    assert differing == {
        "graph": {"cuda_graph"},
        "compile": {"compile"},
        "batch ×2": {"batch_per_device"},
        "channels last": {"layout"},
    }
    assert [other.slug for other in parsed[1:]] == [other.slug for other in changed.values()]


def test_synthetic_data_in_place_of_a_loader_leave_nothing_of_it():
    text = RESNET + "data: images\ndataset: /data/set\nloader: host\nworkers: 2\n"
    synthetic = with_overrides(only_case(text), {"data": "synthetic"})
    assert synthetic == only_case(RESNET + "data: synthetic\n")


def test_a_measured_rate_becomes_a_time_of_the_step_that_was_explained():
    measured = verified_seconds(0.1, [100.0] * 6, [200.0] * 6)
    assert (measured.seconds, measured.low, measured.high, measured.trials) == (0.05, 0.05, 0.05, 6)


def test_a_case_that_cannot_run_here_is_refused_before_anything_is_made(tmp_path):
    case = only_case(RESNET.replace("cuda_graph: false", "cuda_graph: false\nthreads: 1"))
    situation = replace(mostly_waiting(case), settings=settings_of(case))
    with pytest.raises(UserError, match="cannot run here"):
        verify(
            replace(case, topology=load.parse("topology: 9n1g\n", "s").cases[0].topology),
            situation,
            predict(situation),
            tmp_path,
        )
    assert not list(tmp_path.iterdir())


def test_a_situation_is_scaled_to_the_step_timed_without_the_profiler():
    case = only_case(RESNET)
    explanation = Explanation(
        subject=ExplainedSubject("resnet50"),
        steps=2,
        total=200_000_000,
        agreement=Agreement(profiled=0.1, measured=0.098),
        classes=(ClassTime("convolution", 150_000_000, 150_000_000, 320, flop=4e12),),
        idle=(IdleTime("launch", 50_000_000, 100),),
    )
    situation = case_situation(explanation, case, "NVIDIA H200", "trainmark run x")
    (convolution,) = situation.parts
    assert convolution.alone + situation.idle["launch"] == pytest.approx(0.098)
    assert (convolution.launches, convolution.flop, situation.gaps["launch"]) == (160, 2e12, 50)
    assert {other.title for other in situation.others} == {"A100 80GB SXM", "H100 SXM", "B200"}
    assert situation.settings.optimizer == "sgd"
    assert situation.parameters == parameters_of(case) == 25_557_032


def test_a_users_program_trains_in_the_framework_that_its_profile_names():
    assert settings_of(only_case(PROGRAM), framework="pytorch").framework == "pytorch"
    assert settings_of(only_case(RESNET), framework="CUDA").framework == "pytorch"


def test_the_suite_text_is_yaml_that_says_nothing_of_this_machine():
    written = yaml.safe_load(suite_text([only_case(RESNET)], 6))
    assert set(written) == {"name", "about", "cases"}
