"""The suites that come with Trainmark hold what they promise."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from trainmark.measure.figure_doubts import window_doubts
from trainmark.measure.steady_window import SHORTEST_WINDOW, steady_window
from trainmark.suite.load import built_in_names, find, load, parse
from trainmark.suite.model import Repeats, Topology
from trainmark.workloads import registry


def test_the_promised_suites_are_built_in():
    assert {"quick", "resnet50-dlperf", "resnet50-frameworks", "resnet50-scaling"} <= set(built_in_names())


@pytest.mark.parametrize("name", built_in_names())
def test_every_built_in_suite_loads_under_its_own_name_and_says_what_it_is(name):
    suite = load(name)
    assert suite.name == name
    assert suite.about
    assert suite.cases


@pytest.mark.parametrize("name", built_in_names())
def test_the_text_a_run_keeps_of_a_suite_reads_back_as_the_same_cases(name):
    suite = load(name, ["repeats=3", "precision=fp32,bf16"])
    assert parse(suite.text, "suite.yaml").cases == suite.cases


def test_a_built_in_suite_has_no_folder_of_its_own_and_a_users_file_has(tmp_path):
    mine = tmp_path / "mine.yaml"
    mine.write_bytes(find("quick").read_bytes())
    assert load("quick").folder is None
    assert load(str(mine)).folder == str(tmp_path)


def test_resnet50_dlperf_is_exactly_the_published_matrix():
    topologies = [
        Topology(1, 1),
        Topology(1, 2),
        Topology(1, 4),
        Topology(1, 8),
        Topology(2, 8),
        Topology(4, 8),
    ]
    programs = [("fp32", None, 128), ("amp", "dynamic", 256), ("amp", "128", 256)]
    cases = load("resnet50-dlperf").cases
    settings = [(case.precision, case.loss_scale, case.batch_per_device, case.topology) for case in cases]
    wanted = [(*program, topology) for program, topology in itertools.product(programs, topologies)]
    assert sorted(map(str, settings)) == sorted(map(str, wanted))
    for case in cases:
        assert case.rules.repeats == Repeats(5, 5)
        assert (case.rules.warmup_steps, case.rules.measure_steps) == (20, 100)
        assert (case.workload, case.framework, dict(case.axes)) == (
            "resnet50",
            "pytorch",
            {"image_size": 224},
        )


def test_resnet50_scaling_counts_up_to_the_devices_that_are_there():
    cases = load("resnet50-scaling", here=Topology(1, 6)).cases
    topologies = [str(case.topology) for case in cases if case.when == "cuda"]
    assert topologies == ["1n1g", "1n2g", "1n4g", "1n6g"]


@pytest.mark.parametrize("when", ["cuda", "cpu"])
def test_resnet50_strong_scaling_shares_one_batch_among_the_devices(when):
    cases = [case for case in load("resnet50-strong-scaling").cases if case.when == when]
    assert len({case.batch_per_device * case.topology.devices for case in cases}) == 1
    assert len({case.topology for case in cases}) == len(cases) > 2


def test_quick_measures_one_and_two_devices_often_enough_for_an_interval():
    cases = load("quick").cases
    assert {(case.when, str(case.topology)) for case in cases} == {
        (kind, topology) for kind in ("cuda", "cpu") for topology in ("1n1g", "1n2g")
    }
    assert all(case.rules.repeats.least >= 6 for case in cases)


def test_quick_does_not_warn_against_its_own_warm_up_where_a_cold_start_takes_five_steps():
    for case in load("quick").cases:
        cold = np.r_[np.full(5, 1.5), np.full(case.rules.warmup_steps + case.rules.measure_steps - 5, 1.0)]
        window = steady_window(cold, case.rules.warmup_steps)
        assert list(window_doubts(window, case.rules.warmup_steps, SHORTEST_WINDOW)) == []


def test_resnet50_frameworks_holds_every_framework_alike_and_often_enough_for_an_interval():
    cases = load("resnet50-frameworks").cases
    by_framework = {
        name: {replace(case, framework=None) for case in cases if case.framework == name}
        for name in registry.find("resnet50").frameworks
    }
    assert len({frozenset(own) for own in by_framework.values()}) == 1
    assert {(case.when, case.precision, str(case.topology)) for case in cases} == {
        (*kind, topology)
        for kind in (("cuda", "amp"), ("cuda", "bf16"), ("cpu", "fp32"))
        for topology in ("1n1g", "1n2g")
    }
    assert all(case.layout == "any" and case.rules.repeats.least >= 6 for case in cases)
