"""Layout, compiler, graph and frameworks: what a suite leaves to the machine and what is installed there."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from trainmark.runner.command import key_of, workload_arguments
from trainmark.runner.prepare import preflight
from trainmark.suite.load import parse
from trainmark.suite.model import SuiteError
from trainmark.suite.plan import Resources, plan
from trainmark.workloads import registry

# Answers as a workload does, in place of an interpreter: refuses whatever names one of `refused`.
ANSWERING = """#!{python}
import sys
print('{{"framework_version": "1.0"}}')
for line in sys.stdin:
    word = next((word for word in {refused!r} if f'"{{word}}"' in line), None)
    print("null" if word is None else f'"there is no {{word}} here."')
"""


@pytest.fixture
def settled(tmp_path):
    """The cases of a suite and what is skipped, on `device` with a framework that refuses some layouts."""

    def ask(text: str, refused: tuple[str, ...] = (), device: str = "cpu"):
        framework = tmp_path / "framework"
        framework.write_text(ANSWERING.format(python=sys.executable, refused=refused), encoding="utf-8")
        framework.chmod(0o755)
        suite = parse(f"python: {framework}\n{text}", "s.yaml")
        return preflight(plan(suite, Resources(device, devices=2, cores=2)))

    return ask


@pytest.mark.parametrize(("device", "layout"), [("cpu", "NCHW"), ("cuda", "NHWC")])
def test_a_framework_that_has_both_layouts_runs_in_the_usual_one_of_the_device(settled, device, layout):
    (case,) = settled("layout: any", device=device).plan.cases
    assert case.layout == layout


@pytest.mark.parametrize(("device", "layout"), [("cpu", "NHWC"), ("cuda", "NCHW")])
def test_a_framework_that_has_one_layout_runs_in_that(settled, device, layout):
    other = "NCHW" if layout == "NHWC" else "NHWC"
    checked = settled("layout: any", refused=(other,), device=device)
    (case,) = checked.plan.cases
    assert case.layout == layout
    assert list(checked.facts) == [case.slug]
    assert "any" not in case.slug


def test_where_both_layouts_are_refused_the_case_is_skipped_with_both_reasons(settled):
    (skip,) = settled("layout: any", refused=("NCHW", "NHWC")).plan.skipped
    assert skip.reason == "there is no NCHW here. there is no NHWC here."


def test_where_all_is_refused_for_one_reason_it_is_said_once(settled):
    (skip,) = settled("layout: any", refused=("fp32",)).plan.skipped
    assert skip.reason == "there is no fp32 here."


def test_a_layout_that_is_named_is_not_replaced(settled):
    checked = settled("layout: NCHW", refused=("NCHW",))
    assert checked.plan.cases == ()


def test_a_choice_that_falls_on_a_case_already_there_is_that_case(settled):
    assert len(settled("layout: [NCHW, any]").plan.cases) == 1


@pytest.mark.parametrize(
    ("device", "settings"), [("cpu", ("NCHW", False, False)), ("cuda", ("NHWC", True, True))]
)
def test_by_default_pytorch_runs_in_its_fastest_way_on_the_device(settled, device, settings):
    (case,) = settled("batch_per_device: 4", device=device).plan.cases
    assert (case.layout, case.compile, case.cuda_graph) == settings


def test_where_a_compiler_is_refused_the_step_is_still_captured(settled):
    (case,) = settled("seed: 1", refused=("--compile",), device="cuda").plan.cases
    assert (case.compile, case.cuda_graph) == (False, True)


def test_what_is_said_is_not_replaced(settled):
    (case,) = settled("compile: false\ncuda_graph: false", device="cuda").plan.cases
    assert (case.compile, case.cuda_graph) == (False, False)


def test_the_fused_step_is_captured_but_never_asked_to_compile(settled):
    (case,) = settled("engine: fused", device="cuda").plan.cases
    assert (case.compile, case.cuda_graph) == (False, True)


def test_another_framework_compiles_only_where_that_is_said(settled):
    (case,) = settled("framework: jax", device="cuda").plan.cases
    assert (case.compile, case.cuda_graph) == (False, False)


def test_one_device_beside_two_is_not_captured_for_two_cannot_be(settled):
    cases = settled("topology: [1n1g, 1n2g]", device="cuda").plan.cases
    assert [(case.compile, case.cuda_graph) for case in cases] == [(True, False)] * 2


def test_one_device_is_captured_where_more_are_asked_for_than_there_are(settled):
    (case,) = settled("topology: [1n1g, 1n4g]", device="cuda").plan.cases
    assert case.cuda_graph is True


def test_the_reasons_told_are_those_of_the_plainest_way(settled):
    (skip,) = settled("seed: 1", refused=("fp32", "--compile"), device="cuda").plan.skipped
    assert skip.reason == "there is no fp32 here."


def test_a_mode_of_the_compiler_is_in_the_name_and_in_the_key_of_a_case(settled):
    (case,) = settled("compile: reduce-overhead\ncuda_graph: false", device="cuda").plan.cases
    assert case.slug.endswith("-nhwc-reduce-overhead-custom")
    assert key_of(case, "gpu", {}).compiler == "reduce-overhead"
    assert "--compile reduce-overhead" in " ".join(workload_arguments(case))


@pytest.mark.parametrize("key", ["compile", "cuda_graph"])
def test_the_program_of_a_user_cannot_be_asked_whether_to_compile(key):
    with pytest.raises(SuiteError, match=f"cannot be asked for its {key}; say true or false"):
        parse(f"workload: {{command: 'true'}}\n{key}: auto", "s.yaml")


def test_the_program_of_a_user_cannot_be_asked_for_its_layout():
    with pytest.raises(SuiteError, match="cannot be asked for its layout; say NCHW or NHWC"):
        parse("workload: {command: 'true'}\nlayout: any", "s.yaml")


def test_all_frameworks_are_those_that_the_workload_has():
    cases = parse("framework: all", "s.yaml").cases
    assert sorted(str(case.framework) for case in cases) == sorted(registry.find("resnet50").frameworks)


def test_a_framework_named_beside_all_is_there_once():
    assert len(parse("framework: [pytorch, all]", "s.yaml").cases) == len(
        registry.find("resnet50").frameworks
    )


def test_a_framework_that_is_not_installed_is_skipped_with_the_command_that_installs_it(tmp_path):
    bare = Path(sys.executable).resolve()
    suite = parse(f"framework: mindspore\nlayout: any\npython: {bare}", "s.yaml")
    (skip,) = preflight(plan(suite, Resources("cpu", devices=2, cores=2))).plan.skipped
    assert "`trainmark frameworks install mindspore`" in skip.reason
