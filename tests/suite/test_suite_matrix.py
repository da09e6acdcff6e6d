"""Lists multiply, cases inherit, overrides reach everywhere."""

from __future__ import annotations

import itertools

import pytest

from trainmark.suite.load import MOST_CASES, parse
from trainmark.suite.model import Command, Repeats, SuiteError

TWO_CASES = """
batch_per_device: 64
cases:
  - {name: plain, precision: fp32}
  - {name: mixed, precision: amp, batch_per_device: 128, measure: {steps: 40}}
"""


def test_the_matrix_is_the_product_of_all_lists():
    text = (
        "{precision: [fp32, bf16], batch_per_device: [8, 16], topology: [1n1g, 2n4g], compile: [true, false]}"
    )
    combinations = {
        (case.precision, case.batch_per_device, str(case.topology), case.compile)
        for case in parse(text, "suite.yaml").cases
    }
    assert combinations == set(itertools.product(["fp32", "bf16"], [8, 16], ["1n1g", "2n4g"], [True, False]))


def test_a_case_overrules_the_suite_and_inherits_the_rest():
    plain, mixed = parse(TWO_CASES, "suite.yaml").cases
    assert (plain.batch_per_device, mixed.batch_per_device) == (64, 128)
    assert (plain.rules.measure_steps, mixed.rules.measure_steps) == (100, 40)


def test_a_suite_without_cases_is_one_case():
    assert len(parse("precision: bf16", "suite.yaml").cases) == 1


def test_the_loss_scale_multiplies_only_where_it_means_something():
    text = "precision: [fp32, amp]\nloss_scale: [dynamic, 128]"
    cases = parse(text, "suite.yaml").cases
    assert [(case.precision, case.loss_scale) for case in cases] == [
        ("fp32", None),
        ("amp", "dynamic"),
        ("amp", "128"),
    ]


def test_an_override_replaces_the_value_of_the_suite_and_of_every_case():
    cases = parse(TWO_CASES, "suite.yaml", ["batch_per_device=32"]).cases
    assert [case.batch_per_device for case in cases] == [32, 32]


def test_an_override_with_commas_is_a_list_on_an_axis():
    cases = parse("precision: fp32", "suite.yaml", ["precision=fp32,amp", "batch_per_device=8,16"]).cases
    assert [(case.precision, case.batch_per_device) for case in cases] == [
        ("fp32", 8),
        ("fp32", 16),
        ("amp", 8),
        ("amp", 16),
    ]


def test_an_override_may_be_a_list_as_yaml_writes_it():
    cases = parse("precision: fp32", "suite.yaml", ["topology=[1n1g, 1n2g]"]).cases
    assert [str(case.topology) for case in cases] == ["1n1g", "1n2g"]


def test_a_dotted_override_changes_one_key_and_leaves_its_neighbours():
    text = "limits: {trial: 5m, silence: 1m}"
    (case,) = parse(text, "suite.yaml", ["limits.trial=2h", "measure.steps=7"]).cases
    assert (case.rules.trial_limit, case.rules.silence_limit) == (7200, 60)
    assert case.rules.measure_steps == 7


def test_a_dotted_override_reaches_the_cases_that_have_the_section():
    plain, mixed = parse(TWO_CASES, "suite.yaml", ["measure.steps=9"]).cases
    assert (plain.rules.measure_steps, mixed.rules.measure_steps) == (9, 9)


def test_overriding_the_name_renames_the_suite_and_not_its_cases():
    suite = parse(TWO_CASES, "suite.yaml", ["name=mine"])
    assert suite.name == "mine"
    assert [case.label for case in suite.cases] == ["plain", "mixed"]


def test_an_override_with_null_brings_the_default_back():
    (case,) = parse("threads: 4", "suite.yaml", ["threads=null"]).cases
    assert case.threads is None


def test_a_later_override_wins():
    (case,) = parse("batch_per_device: 1", "suite.yaml", ["batch_per_device=2", "batch_per_device=3"]).cases
    assert case.batch_per_device == 3


@pytest.mark.parametrize("override", ["precision", "=fp32", "", " = 1"])
def test_an_override_that_is_none_is_refused_with_an_example(override):
    with pytest.raises(SuiteError, match="write KEY=VALUE"):
        parse("precision: fp32", "suite.yaml", [override])


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("batchsize=3", "--set batchsize=3: unknown key 'batchsize'; did you mean 'batch_per_device'?"),
        ("precision=fp33", "--set precision=fp33: 'precision' takes fp32, tf32, amp or bf16, not 'fp33'."),
        ("measure.stepz=3", "--set measure.stepz=3: 'measure' has no key 'stepz'; did you mean 'steps'?"),
        ("framework=pytroch", "--set framework=pytroch: resnet50 has no framework 'pytroch'; did you mean"),
        ("precision=fp32,", "--set precision=fp32,: 'precision' takes fp32, tf32, amp or bf16, not ''."),
        ("cases=[]", "--set cases=[]: unknown key 'cases'"),
    ],
)
def test_a_wrong_override_is_named_as_it_was_typed_not_by_a_line_of_the_file(override, sentence):
    with pytest.raises(SuiteError) as refusal:
        parse("precision: fp32\ncases: [{precision: amp}]", "suite.yaml", [override])
    assert str(refusal.value).startswith(sentence)


def test_two_different_cases_that_would_share_a_folder_are_refused():
    text = "cases:\n  - {precision: fp32, measure: {steps: 5}}\n  - {precision: fp32, measure: {steps: 6}}\n"
    with pytest.raises(SuiteError, match=r"^suite.yaml:3: a second, different case pytorch-fp32-b32-1n1g"):
        parse(text, "suite.yaml")


def test_the_same_case_twice_is_one_case():
    assert len(parse("cases: [{precision: fp32}, {precision: fp32}]", "suite.yaml").cases) == 1


def test_cases_with_an_environment_of_their_own_have_folders_of_their_own():
    text = "cases: [{name: a, environment: {X: '1'}}, {name: b, environment: {X: '2'}}]"
    assert len({case.slug for case in parse(text, "suite.yaml").cases}) == 2


@pytest.mark.parametrize("values", [list(range(1, MOST_CASES + 2)), [8] * (MOST_CASES + 1)])
def test_a_matrix_too_large_to_run_is_refused_even_where_its_points_coincide(values):
    with pytest.raises(SuiteError, match="narrow the lists"):
        parse(f"batch_per_device: {values}", "suite.yaml")


def test_a_command_with_a_pattern_is_read_by_the_pattern_reader():
    (case,) = parse("workload: {command: ./train, pattern: 'step'}", "suite.yaml").cases
    assert case.workload == Command("command", "./train", "pattern", "step")
    assert case.framework is None


def test_a_command_without_a_pattern_is_read_through_the_probe():
    (case,) = parse("workload: {command: ./train, unit: tokens}", "suite.yaml").cases
    assert case.workload == Command("command", "./train", "probe", unit="tokens")


@pytest.mark.parametrize(
    ("written", "repeats"),
    [
        ("7", Repeats(7, 7)),
        ("{min: 6, max: 20, until: '±0.5%'}", Repeats(6, 20, 0.005)),
        ("{min: 30, until: '+-2%'}", Repeats(30, 30, 0.02)),
        ("{until: 1 %}", Repeats(5, 20, 0.01)),
        ("{min: 3}", Repeats(3, 3)),
    ],
)
def test_repeats_are_a_number_or_grow_until_the_interval_is_tight(written, repeats):
    (case,) = parse(f"repeats: {written}", "suite.yaml").cases
    assert case.rules.repeats == repeats
