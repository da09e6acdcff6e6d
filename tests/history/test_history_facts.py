"""Which facts fit a change of level, and what of an environment is a fact."""

from __future__ import annotations

import pytest

from trainmark.measure.history.facts import (
    changed_facts,
    command_fact,
    environment_facts,
    fact_differences,
    machine_of,
    parts_only_in,
    settings_that_differ,
    variable_facts,
)
from trainmark.measure.history.series import RunPoint


def points(*facts: dict[str, str]) -> list[RunPoint]:
    return [RunPoint(f"run-{index}", index, (1.0,), own) for index, own in enumerate(facts)]


def fits(own: list[RunPoint], index: int, **bounds: int) -> dict[str, float]:
    return {fact.name: round(fact.fit, 3) for fact in changed_facts(own, index, **bounds)}


def test_a_fact_constant_on_both_sides_and_different_fits_wholly():
    history = points(*[{"driver": "550"}] * 4, *[{"driver": "560"}] * 3)
    assert fits(history, 4) == {"driver": 1.0}


def test_a_fact_that_changed_one_result_early_fits_less_and_stands_behind():
    early = [{"kernel": "6.1" if index < 3 else "6.2", "driver": "550"} for index in range(4)]
    history = points(*early, *[{"kernel": "6.2", "driver": "560"}] * 4)
    assert list(fits(history, 4).items()) == [("driver", 1.0), ("kernel", 0.75)]


def test_a_commit_that_differs_in_every_result_fits_hardly_and_names_those_around_the_change():
    history = points(*({"commit": str(index), "driver": "550"} for index in range(20)))
    (fact,) = changed_facts(history, 10)
    assert (fact.name, fact.before, fact.after) == ("commit", "9", "10")
    assert fact.fit == pytest.approx(0.01)


def test_a_fact_that_changed_elsewhere_and_fits_badly_is_not_listed():
    history = points(*({"kernel": "6.1" if index in (2, 15) else "6.2"} for index in range(20)))
    assert fits(history, 10) == {}


def test_a_fact_that_stays_is_not_listed():
    assert fits(points({"driver": "550"}, {"driver": "550"}), 1) == {}


def test_results_beyond_the_neighbouring_changes_do_not_count():
    history = points({"driver": "1"}, {"driver": "2"}, {"driver": "3"}, {"driver": "4"})
    assert fits(history, 2, start=1, stop=3) == {"driver": 1.0}


def test_a_variable_that_was_not_set_before_fits_wholly_and_a_fact_not_recorded_before_by_half():
    history = points({}, {}, *[{"variables.NCCL_ALGO": "Ring", "cpu.turbo": "on"}] * 2)
    assert fits(history, 2) == {"variables.NCCL_ALGO": 1.0, "cpu.turbo": 0.5}


def test_a_clock_fits_by_its_medians_although_it_is_never_twice_the_same():
    clocks = [1980, 1975, 1982, 1410, 1415, 1405]
    history = points(*({"clock_mhz": str(clock)} for clock in clocks))
    (fact,) = changed_facts(history, 3)
    assert (fact.before, fact.after, fact.fit) == ("1980", "1410", 1.0)


def test_a_clock_that_moves_by_less_than_a_hundredth_is_no_change():
    history = points({"clock_mhz": "1980"}, {"clock_mhz": "1990"})
    assert fits(history, 1) == {}
    assert fact_differences(*history) == ()


def test_of_facts_that_fit_equally_the_framework_comes_before_the_kernel():
    history = points({"kernel": "6.1", "framework_version": "1"}, {"kernel": "6.2", "framework_version": "2"})
    assert list(fits(history, 1)) == ["framework_version", "kernel"]


def test_two_results_differ_in_what_was_changed_and_in_what_was_added():
    before, after = points(
        {"driver": "550", "kernel": "6.1"}, {"driver": "560", "kernel": "6.1", "mig": "on"}
    )
    names = [(fact.name, fact.before, fact.after) for fact in fact_differences(before, after)]
    assert names == [("driver", "550", "560"), ("mig", None, "on")]


ENVIRONMENT = {
    "host": {"hostname": "bench-1", "kernel": "Linux 6.1", "cpu": {"governor": None, "turbo": True}},
    "devices": {
        "driver": "550",
        "gpus": [{"name": "H100", "uuid": "GPU-1"}, {"name": "H100", "uuid": "GPU-2"}],
    },
    "topology": "GPU0\nGPU1",
    "fabric": {"interfaces": [{"name": "eth0", "mtu": 1500, "physical": True}, {"name": "veth9"}]},
    "software": {
        "frameworks": {"jax": "1"},
        "packages": {"numpy": "2"},
        "variables": {"OMP_NUM_THREADS": "2"},
    },
    "git": {"commit": "abc", "branch": "main", "dirty": False},
    "container": None,
}


def test_an_environment_gives_flat_facts_without_names_of_single_pieces_of_hardware():
    facts = environment_facts(ENVIRONMENT)
    assert facts.pop("topology").startswith("sha256 ")
    assert facts == {
        "kernel": "Linux 6.1",
        "cpu.turbo": "True",
        "driver": "550",
        "gpus.name": "H100",
        "gpus.count": "2",
        "network": "eth0 1500",
        "packages.numpy": "2",
        "variables.OMP_NUM_THREADS": "2",
        "commit": "abc",
        "dirty": "False",
    }


def test_variables_that_say_where_a_rank_runs_are_no_facts():
    assert variable_facts({"PYTHONPATH": "/x", "TRAINMARK_JOB": "1", "NCCL_ALGO": "Ring"}) == {
        "variables.NCCL_ALGO": "Ring"
    }


def test_the_fact_of_a_command_leaves_out_variables_the_run_folder_and_the_place_of_python():
    command = "A=1 /venv/bin/python train.py --out runs/night-7/out --lr 0.1"
    assert command_fact(command, "night-7") == {"command": "python train.py --out --lr 0.1"}


def test_a_run_with_a_short_name_takes_no_word_out_of_its_command():
    assert command_fact("python train.py --data a", "a") == {"command": "python train.py --data a"}


def test_the_fact_of_a_line_that_a_shell_runs_is_the_line_without_its_secrets():
    line = "PYTHONPATH='/a b' sh -c 'LR=0.1 /venv/bin/python train.py --api-key abc123'"
    assert command_fact(line, "one") == {"command": "LR=0.1 python train.py --api-key *****"}


def test_the_parts_of_a_command_that_another_lacks_are_options_with_their_values():
    before, after = "python train.py --lr 0.1 --amp", "python train.py --lr 0.2 --width=8"
    assert parts_only_in(before, after) == ["--lr 0.1", "--amp"]
    assert parts_only_in(after, before) == ["--lr 0.2", "--width=8"]


def test_settings_that_differ_leave_out_clocks_and_what_one_version_alone_recorded():
    before, after = (
        RunPoint("run", 0.0, (1.0,), facts)
        for facts in (
            {"command": "a", "clock_mhz": "1000", "variables.OMP_NUM_THREADS": "1"},
            {"command": "b", "clock_mhz": "2000", "board": "X"},
        )
    )
    names = [(fact.name, fact.before, fact.after) for fact in settings_that_differ(before, after)]
    assert names == [("command", "a", "b"), ("variables.OMP_NUM_THREADS", "1", None)]


def test_containers_with_random_host_names_are_one_machine():
    assert machine_of({"host": {"hostname": "3f2a9c01d4e5"}, "container": {"kind": "docker"}}) == "container"
    assert machine_of({"host": {"hostname": "bench-1"}, "container": {"kind": "docker"}}) == "bench-1"
    assert machine_of({}) == ""
