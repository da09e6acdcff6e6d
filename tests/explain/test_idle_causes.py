"""Planted causes of idle time come out first, with the call and the line that they were planted in."""

from __future__ import annotations

import random

import pytest
from builders_idle import MICROSECOND, MILLISECOND, Machine, gaps

from trainmark.explain.breakdown import Gap
from trainmark.explain.explanation import IdleTime
from trainmark.explain.idle import causes
from trainmark.explain.profile import Collector, DeviceKind, HostKind, Profile, ProfiledStep

STEPS = 5


def train(machine: Machine, kernel: int, kernels: int = 40, fetch: int = 0, item: bool = False) -> Machine:
    """Five steps of equal kernels; a loader that sleeps and an `.item()` where asked for."""
    machine.launch("warm", 10 * kernel)
    with machine.python("train.py(31): main"):
        for _ in range(STEPS):
            with machine.step():
                with machine.annotation("trainmark_data"), machine.python("data.py(7): fetch"):
                    machine.work(MICROSECOND)
                    with machine.python("<built-in function sleep>"):
                        machine.work(fetch)
                for _ in range(kernels):
                    forward = machine.python("torch/nn/modules/linear.py(130): forward")
                    with forward, machine.operator("aten::linear"):
                        machine.work(3 * MICROSECOND)
                        machine.launch("gemm", kernel)
                if item:
                    machine.item()
    return machine


def explained(machine: Machine, detail: Machine | None = None) -> tuple[IdleTime, ...]:
    profile = machine.profile()
    idle = gaps(profile)
    rows = causes(profile, idle, None if detail is None else detail.profile())
    assert sum(row.nanoseconds for row in rows) == sum(gap.end - gap.start for gap in idle)
    return rows


def test_a_loader_that_sleeps_is_named_with_its_line():
    loader, *rest = explained(train(Machine(), 100 * MICROSECOND, fetch=20 * MILLISECOND))
    assert loader.cause == "loader"
    assert loader.evidence[0].startswith("next batch: sleep at data.py(7): fetch · 1×")
    assert sum(row.nanoseconds for row in rest) < 0.01 * loader.nanoseconds


def test_a_loader_that_is_quicker_than_the_device_is_no_cause():
    assert explained(train(Machine(), 500 * MICROSECOND, fetch=4 * MILLISECOND)) == ()


def test_an_item_every_step_of_a_device_bound_program_takes_all_the_idle_time_after_it():
    synchronisation, *rest = explained(train(Machine(), 100 * MICROSECOND, item=True))
    assert synchronisation.cause == "synchronisation"
    expected = "aten::item → cudaStreamSynchronize at train.py(31): main · 0.8×"
    assert synchronisation.evidence[0].startswith(expected)
    assert "launch" not in {row.cause for row in rest}


def test_an_item_that_empties_the_queue_pays_for_the_launches_that_come_one_by_one_after_it():
    machine = Machine()
    machine.launch("warm", MILLISECOND)
    for _ in range(STEPS):
        with machine.step():
            for _ in range(20):  # the host is late for each of these, because the queue is empty
                machine.work(5 * MICROSECOND)
                machine.launch("small", 2 * MICROSECOND)
            machine.launch("large", 10 * MILLISECOND)
            machine.item()
    rows = explained(machine)
    assert rows[0].cause == "synchronisation"
    assert "launch" not in {row.cause for row in rows[1:]} or rows[1].gaps <= 21  # before the first item


def test_tiny_kernels_are_launch_bound_and_stay_so_with_an_item():
    plain = explained(train(Machine(), 2 * MICROSECOND))
    synchronised = explained(train(Machine(), 2 * MICROSECOND, item=True))
    assert plain[0].cause == synchronised[0].cause == "launch"
    assert "launches came late" in synchronised[0].evidence[0]
    assert synchronised[0].nanoseconds > 10 * sum(row.nanoseconds for row in synchronised[1:])


def test_sleep_in_the_training_loop_is_not_the_loaders():
    machine = Machine()
    machine.launch("warm", MILLISECOND)
    with machine.python("train.py(31): main"):
        for _ in range(STEPS):
            with machine.step():
                with machine.python("train.py(12): log"), machine.python("<built-in function sleep>"):
                    machine.work(5 * MILLISECOND)
                machine.launch("gemm", MILLISECOND)
    launch, *_ = explained(machine)
    assert launch.cause == "launch"
    assert launch.evidence[1].startswith("sleep at train.py(12): log")


def test_gaps_between_the_nodes_of_a_graph_are_dependencies():
    machine = Machine()
    machine.launch("warm", MILLISECOND)
    for _ in range(STEPS):
        with machine.step():
            machine.graph(["gemm", "relu", "gemm"], 300 * MICROSECOND, MICROSECOND)
    (dependency,) = explained(machine)
    assert (dependency.cause, dependency.gaps) == ("dependency", 2 * STEPS)
    assert dependency.evidence[1].startswith("between nodes of a graph")


def test_a_blocking_copy_of_the_batch_is_a_synchronisation_not_the_loader():
    machine = Machine()
    machine.launch("warm", MILLISECOND)
    for _ in range(STEPS):
        with machine.step():
            with machine.annotation("trainmark_data"), machine.operator("aten::to"):
                copy = "Memcpy HtoD (Pageable -> Device)"
                machine.launch(copy, 5 * MICROSECOND, kind=DeviceKind.COPY, call="cudaMemcpyAsync")
                machine.synchronise()
            for _ in range(10):
                machine.launch("gemm", MILLISECOND)
    assert explained(machine)[0].cause == "synchronisation"


def test_a_loader_that_only_a_synchronisation_exposes_says_so():
    loader = explained(train(Machine(), MILLISECOND, fetch=8 * MILLISECOND, item=True))[0]
    assert loader.cause == "loader"
    assert loader.evidence[-1].endswith("would be hidden without the synchronisation before it")


@pytest.mark.parametrize(
    ("settings", "cause", "evidence"),
    [
        ({"kernel": 100, "fetch": 20_000}, "loader", "next batch: sleep at data.py(7): fetch"),
        ({"kernel": 100, "item": True}, "synchronisation", "aten::item → cudaStreamSynchronize at train.py"),
        ({"kernel": 2}, "launch", "train.py(31): main"),
    ],
)
def test_a_bare_timing_pass_takes_its_evidence_from_the_detailed_pass(settings, cause, evidence):
    chosen = {name: value if name == "item" else value * MICROSECOND for name, value in settings.items()}
    rows = explained(train(Machine(bare=True), **chosen), train(Machine(start=10**9), **chosen))
    assert rows[0].cause == cause
    assert any(evidence in sentence for sentence in rows[0].evidence)


def test_a_kernel_without_its_launch_is_other():
    collector = Collector()
    collector.device("first", 0, 10)
    collector.device("second", 30, 40)
    profile = Profile("cuda", collector.device_spans(), collector.host_spans(), (ProfiledStep(0, 0, 40),))
    (row,) = causes(profile, [Gap(10, 30, 0)])
    assert (row.cause, row.nanoseconds, row.gaps) == ("other", 20, 1)


def test_on_a_cpu_gaps_are_the_loaders_the_collectives_or_pythons():
    collector = Collector()
    collector.host("trainmark_step#0", 0, 1000, kind=HostKind.ANNOTATION)
    collector.host("trainmark_data", 0, 300, kind=HostKind.ANNOTATION)
    collector.host("train.py(3): main", 0, 1000, kind=HostKind.PYTHON)
    collector.host("data.py(5): fetch", 0, 300, kind=HostKind.PYTHON)
    collector.host("gloo:all_reduce", 500, 700, thread=1, kind=HostKind.ANNOTATION)
    spans = Collector()
    spans.device("aten::mm", 300, 500)
    spans.device("aten::add_", 750, 1000)
    profile = Profile("cpu", spans.device_spans(), collector.host_spans(), (ProfiledStep(0, 0, 1000),))
    rows = causes(profile, gaps(profile))
    assert [(row.cause, row.nanoseconds) for row in rows] == [
        ("loader", 300),
        ("communication", 200),
        ("launch", 50),
    ]
    assert rows[0].evidence[0].startswith("next batch: data.py(5): fetch")
    assert rows[2].evidence[0].startswith("train.py(3): main")


@pytest.mark.parametrize("device", ["cuda", "cpu"])
def test_causes_add_up_whatever_the_rows_look_like(device):
    """Rows at random: calls without kernels, kernels without calls, rows that cross, several streams."""
    choose = random.Random(7)
    calls = ("cudaLaunchKernel", "cudaMemcpyAsync", "cudaStreamSynchronize", "trainmark_data", "aten::mm")
    calls += ("train.py(3): main", "gloo:all_reduce", "trainmark_step#0")
    for _ in range(50):
        built = []
        for _ in range(2):
            collector = Collector()
            for _ in range(choose.randrange(40)):
                start, kind = choose.randrange(1000), choose.choice(list(HostKind))
                row = choose.choice(calls), start, start + choose.randrange(300)
                collector.host(*row, choose.randrange(3), kind, choose.randrange(-1, 20))
            for _ in range(choose.randrange(30)):
                start, kind = choose.randrange(1000), choose.choice(list(DeviceKind))
                row = choose.choice("abc"), start, start + choose.randrange(60)
                collector.device(*row, choose.randrange(3), kind, choose.randrange(-1, 20))
            steps = (ProfiledStep(0, 100, 500), ProfiledStep(1, 500, 900))
            built.append(Profile(device, collector.device_spans(), collector.host_spans(), steps))
        profile, detail = built
        idle = gaps(profile)
        rows = causes(profile, idle, detail)
        assert sum(row.nanoseconds for row in rows) == sum(gap.end - gap.start for gap in idle)
        assert all(row.nanoseconds > 0 and 0 < row.gaps <= len(idle) for row in rows)
