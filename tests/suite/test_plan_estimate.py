"""How long a plan is said to take."""

from __future__ import annotations

import pytest

from trainmark.runner.prepare import CORE_FLOPS, START_SECONDS, plan_seconds, trial_seconds
from trainmark.suite.load import parse
from trainmark.suite.plan import Resources, plan
from trainmark.workloads.resnet50.shared.recipe import flops_per_image

SUITE = (
    "device: cpu\nbatch_per_device: 2\nimage_size: 64\nmeasure: {steps: 10}\nwarmup: {steps: 5}\nrepeats: 3\n"
)
OWN = SUITE + "cases:\n- {}\n- workload: {name: own, command: 'true'}\n"


def planned(text):
    return plan(parse(text, "suite.yaml"), Resources("cpu", 1, cores=4))


def test_a_trial_takes_its_start_and_its_operations_at_the_rate_of_its_cores():
    (case,) = planned(SUITE).cases
    computing = flops_per_image(64) * 2 * 15 / (4 * CORE_FLOPS)
    assert trial_seconds(case, {}) == pytest.approx(START_SECONDS + computing)


def test_a_case_that_has_run_takes_as_long_as_it_did():
    (case,) = planned(SUITE).cases
    assert trial_seconds(case, {case.slug: 77.0}) == 77.0
    assert plan_seconds(planned(SUITE), {case.slug: 77.0}) == 3 * 77.0


def test_a_plan_with_a_program_that_never_ran_cannot_be_told():
    assert plan_seconds(planned(OWN), {}) is None
