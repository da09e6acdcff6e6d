"""The order of the trials, and what a machine cannot hold."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainmark.suite.load import load, parse
from trainmark.suite.model import Topology, parse_topology, powers_of_two
from trainmark.suite.plan import Resources, plan

CPU = Resources("cpu", devices=8, cores=8)
MANY = "batch_per_device: [1, 2, 3, 4, 5, 6, 7, 8]\nrepeats: 6\n"


def orders(text: str, machine: Resources = CPU) -> list[list[str]]:
    made = plan(parse(text, "suite.yaml"), machine)
    return [[trial.case.slug for trial in made.round(repeat)] for repeat in range(1, made.rounds + 1)]


def test_every_round_has_each_case_once():
    made = plan(parse(MANY, "suite.yaml"), CPU)
    wanted = sorted(case.slug for case in made.cases)
    assert len(wanted) == 8
    assert all(sorted(order) == wanted for order in orders(MANY))


def test_the_rounds_are_run_one_after_the_other():
    trials = plan(parse(MANY, "suite.yaml"), CPU).certain()
    repeats = [trial.repeat for trial in trials]
    assert repeats == sorted(repeats)
    assert len({trial.id for trial in trials}) == len(trials) == 48


def test_the_order_is_the_same_for_the_same_seed_and_another_for_another():
    assert orders(MANY) == orders(MANY)
    assert orders(MANY) != orders(f"seed: 1\n{MANY}")


def test_the_order_differs_between_the_rounds():
    assert len({tuple(order) for order in orders(MANY)}) > 1


def test_a_case_with_fewer_repeats_leaves_the_later_rounds_to_the_others():
    text = "cases: [{precision: fp32, repeats: 1}, {precision: bf16, repeats: 3}]"
    assert [len(order) for order in orders(text)] == [2, 1, 1]


def test_repeats_that_depend_on_the_spread_are_not_certain():
    made = plan(parse("repeats: {min: 2, max: 9, until: '±1%'}", "suite.yaml"), CPU)
    assert made.rounds == 9
    assert len(made.certain()) == 2


@pytest.mark.parametrize(
    ("case", "machine", "reason"),
    [
        ("topology: 2n8g", Resources("cuda", 8), "needs 2 nodes; this run has 1 (--hosts names more)"),
        ("topology: 1n8g", Resources("cuda", 1), "needs 8 CUDA devices a node; this machine has 1"),
        ("topology: 1n4g", Resources("cpu", 2, cores=2), "needs 4 cores, one a rank; this machine has 2"),
        ("device: cuda", CPU, "needs a CUDA device; this machine has none"),
        (
            "device: cpu\ntopology: 1n4g",
            Resources("cuda", 8, cores=2),
            "needs 4 cores, one a rank; this machine has 2",
        ),
    ],
)
def test_what_the_machine_cannot_hold_is_skipped_with_the_reason(case, machine, reason):
    made = plan(parse(case, "suite.yaml"), machine)
    assert made.cases == ()
    assert [skip.reason for skip in made.skipped] == [reason]


@pytest.mark.parametrize(
    ("case", "machine"),
    [
        ("topology: 2n8g", Resources("cuda", 8, nodes=2)),
        ("topology: 1n8g", Resources("cuda", 8)),
        ("topology: 1n2g", Resources("cpu", 2, cores=2)),
        ("device: cpu", Resources("cuda", 1, cores=2)),
    ],
)
def test_what_fits_is_run(case, machine):
    made = plan(parse(case, "suite.yaml"), machine)
    assert (len(made.cases), made.skipped) == (1, ())


def test_cases_meant_for_another_kind_of_machine_are_left_out_without_a_word():
    for kind in ("cuda", "cpu"):
        made = plan(load("quick"), Resources(kind, 2, cores=2))
        assert {case.label for case in made.cases} == {"gpu" if kind == "cuda" else "cpu"}
        assert made.skipped == ()


def test_an_automatic_device_becomes_the_machines_own():
    assert {case.device for case in plan(load("quick"), CPU).cases} == {"cpu"}
    assert {case.device for case in plan(load("quick"), Resources("cuda", 2)).cases} == {"cuda"}


@settings(deadline=None)
@given(st.integers(1, 99999), st.integers(1, 9999))
def test_a_topology_reads_back_as_it_was_written(nodes, devices):
    topology = Topology(nodes, devices)
    assert parse_topology(str(topology)) == topology
    assert topology.devices == nodes * devices


@pytest.mark.parametrize("written", ["1n", "n1g", "1n1", "1n1g1", "01n1g", "1N1G", "1n-1g", "1n1g\n1n1g", ""])
def test_what_is_no_topology_is_refused(written):
    with pytest.raises(ValueError, match="is not a topology"):
        parse_topology(written)


@settings(deadline=None)
@given(st.integers(1, 5000))
def test_powers_of_two_go_from_one_device_to_all_of_them(most):
    counts = [topology.devices_per_node for topology in powers_of_two(Topology(1, most))]
    assert (counts[0], counts[-1]) == (1, most)
    assert counts == sorted(set(counts))
    assert all(count & (count - 1) == 0 for count in counts[:-1])
    assert all(later <= 2 * earlier for earlier, later in itertools.pairwise(counts))


def test_a_cpu_rank_has_the_same_share_of_the_cores_in_every_topology():
    made = plan(parse("topology: [1n1g, 1n2g, 1n4g]\n", "suite.yaml"), CPU)
    assert [case.fair_threads for case in made.cases] == [2, 2, 2]


def test_a_cuda_rank_has_no_share_of_the_cores():
    (case,) = plan(parse("device: cuda\n", "suite.yaml"), Resources("cuda", devices=1, cores=8)).cases
    assert case.fair_threads is None
