"""`layout: any` and `framework: all`: what a suite leaves to the frameworks that are there."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from trainmark.runner.preflight import preflight
from trainmark.suite import workloads
from trainmark.suite.errors import SuiteError
from trainmark.suite.load import parse
from trainmark.suite.plan import Machine, plan

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
        return preflight(plan(suite, Machine(device, devices=2, cores=2)))

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


def test_the_program_of_a_user_cannot_be_asked_for_its_layout():
    with pytest.raises(SuiteError, match="cannot be asked for its layout; say NCHW or NHWC"):
        parse("workload: {command: 'true'}\nlayout: any", "s.yaml")


def test_all_frameworks_are_those_that_the_workload_has():
    cases = parse("framework: all", "s.yaml").cases
    assert sorted(str(case.framework) for case in cases) == sorted(workloads.frameworks("resnet50"))


def test_a_framework_named_beside_all_is_there_once():
    assert len(parse("framework: [pytorch, all]", "s.yaml").cases) == len(workloads.frameworks("resnet50"))


def test_a_framework_that_is_not_installed_is_skipped_with_the_command_that_installs_it(tmp_path):
    bare = Path(sys.executable).resolve()
    suite = parse(f"framework: mindspore\nlayout: any\npython: {bare}", "s.yaml")
    (skip,) = preflight(plan(suite, Machine("cpu", devices=2, cores=2))).plan.skipped
    assert "`trainmark frameworks install mindspore`" in skip.reason
