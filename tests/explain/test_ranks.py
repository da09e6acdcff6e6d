"""Two and more ranks: who is waited for, what is exposed, and how fast the collectives were."""

from __future__ import annotations

import json

import pytest

from trainmark.explain.chrome_trace import read
from trainmark.explain.explanation import RankTime
from trainmark.explain.profile import Collector, HostKind, Operands, Profile, ProfiledStep
from trainmark.explain.ranks import (
    expected_seconds,
    link_bandwidth,
    link_evidence,
    message_bytes,
    ranks,
    waited_for,
)
from trainmark.explain.trace_events import collective_operands
from trainmark.measure.fabric import AllReduce, FabricMeasurement, MessageTime

MILLISECOND = 1_000_000
STEPS = 3
SIZE = 25_000_000


def rank_profile(
    rank: int, backward: list[int], transfer: int, clock: int = 0, described: bool = True
) -> tuple[Profile, list[str]]:
    """Steps of 10 ms forward, then backward; two buckets, the first while the second's backward runs.

    `backward` has the time of every rank: a bucket moves only when the last of them has come.
    """
    collector, step_start = Collector(), clock
    steps = []
    for number in range(STEPS):
        ready = step_start + 10 * MILLISECOND
        compute_end = ready + 2 * backward[rank]
        collector.device("forward_gemm", step_start, ready)
        free = 0
        for bucket in (1, 2):
            own = ready + bucket * backward[rank]
            begin = max(own, free)
            last = max(ready + bucket * max(backward), free)
            free = last + transfer
            correlation = 10 * number + bucket
            kernel = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
            collector.device(kernel, begin, free, stream=1, launch=correlation)
            call = step_start + bucket
            collector.host("ncclLaunch", call, call + 1, kind=HostKind.RUNTIME, launch=correlation)
            if described:
                message = Operands(((SIZE // 4,), (SIZE // 4,)), ("Float", "Float"), ("allreduce", "2"))
                collector.host("record_param_comms", call, call + 1, operands=message)
        collector.device("backward_gemm", ready, compute_end)
        steps.append(ProfiledStep(number, step_start, max(free, compute_end)))
        step_start = max(free, compute_end)
    spans = collector.device_spans()
    classes = [
        "communication" if spans.names[name].startswith("nccl") else "matrix product" for name in spans.name
    ]
    return Profile("cuda", spans, collector.host_spans(), tuple(steps), rank, len(backward)), classes


def explained(backward: list[int], transfer: int, described: bool = True):
    built = [
        rank_profile(rank, backward, transfer, clock=rank * 7_000 * MILLISECOND, described=described)
        for rank in range(len(backward))
    ]
    return ranks([profile for profile, _ in built], [classes for _, classes in built])


def test_the_late_rank_is_the_one_waited_for_though_clocks_differ():
    times, buckets = explained([5 * MILLISECOND, 5 * MILLISECOND, 9 * MILLISECOND], MILLISECOND)
    late = waited_for(times)
    assert late is not None
    assert late.rank == 2
    assert late.late == pytest.approx(8e-3)  # in the first bucket their own backward hides the wait
    assert next(link_evidence(times, buckets, None)).startswith("rank 2 comes late: the others wait")
    assert times[0].late == times[1].late == 0


def test_a_slow_link_is_exposed_on_all_ranks_and_nobody_is_late():
    times, buckets = explained([5 * MILLISECOND, 5 * MILLISECOND], 50 * MILLISECOND)
    assert waited_for(times) is None
    assert [round(time.exposed * 1e3) for time in times] == [95, 95]
    assert [round(time.hidden * 1e3) for time in times] == [5, 5]
    sentence = next(link_evidence(times, buckets, link=5e9))
    assert sentence == "all_reduce #2 of 25.0 MB: 50.000 of 50.000 ms exposed, 0.5 GB/s = 10% of the fabric's"


def test_compute_exposed_and_idle_are_the_step():
    times, _ = explained([5 * MILLISECOND, 9 * MILLISECOND], 3 * MILLISECOND)
    for time in times:
        assert time.compute + time.exposed + time.idle == pytest.approx(time.step, rel=1e-12)


def test_a_transfer_behind_computing_is_hidden():
    times, buckets = explained([20 * MILLISECOND, 20 * MILLISECOND], MILLISECOND)
    assert times[0].hidden == pytest.approx(1e-3)
    assert [bucket.exposed for bucket in buckets] == pytest.approx([0, 1e-3])


def test_the_time_of_a_bucket_is_without_the_wait_for_the_late_rank():
    _, buckets = explained([5 * MILLISECOND, 9 * MILLISECOND], 10 * MILLISECOND)
    assert buckets[0].seconds == pytest.approx(10e-3)
    assert buckets[0].bandwidth == pytest.approx(SIZE / 10e-3)  # 2(n − 1) ÷ n is 1 for two ranks


def test_bytes_come_from_the_detailed_pass_where_the_timing_pass_has_none():
    bare, classes = rank_profile(0, [5 * MILLISECOND, 5 * MILLISECOND], MILLISECOND, described=False)
    detail, _ = rank_profile(0, [5 * MILLISECOND, 5 * MILLISECOND], MILLISECOND)
    _, unknown = ranks([bare], [classes])
    _, known = ranks([bare], [classes], [detail])
    assert [bucket.bytes for bucket in unknown] == [None, None]
    assert [bucket.bytes for bucket in known] == [SIZE, SIZE]


def test_collectives_of_gloo_count_though_only_their_threads_record_them():
    collector, spans = Collector(), Collector()
    message = Operands(((1000,),), ("float",))
    collector.host("gloo:all_reduce", 400, 900, thread=1, kind=HostKind.ANNOTATION, operands=message)
    spans.device("aten::mm", 0, 500)
    profile = Profile("cpu", spans.device_spans(), collector.host_spans(), (ProfiledStep(0, 0, 1000),), 0, 2)
    (time,), (bucket,) = ranks([profile], [["matrix product"]])
    assert (time.exposed, time.hidden, time.idle) == pytest.approx((400e-9, 100e-9, 100e-9))
    assert (bucket.name, bucket.bytes) == ("all_reduce #1", 4000)


def test_ranks_without_collectives_wait_for_nobody():
    spans = Collector()
    spans.device("gemm", 0, 10)
    profile = Profile("cuda", spans.device_spans(), Collector().host_spans(), (ProfiledStep(0, 0, 10),))
    times, buckets = ranks([profile, profile], [["matrix product"]] * 2)
    assert [time.late for time in times] == [0, 0]
    assert buckets == ()


def test_one_percent_of_a_step_names_no_late_rank():
    punctual = RankTime(0, None, 1.0, 1.0, 0, 0, 0, late=0.009)
    assert waited_for([punctual]) is None
    assert waited_for([]) is None


def test_what_kineto_notes_of_a_collective_becomes_operands():
    arguments = {
        "In msg nelems": 100,
        "Out msg nelems": 800,
        "dtype": "BFloat16",
        "Collective name": "_allgather_base",
        "Group size": 8,
    }
    assert collective_operands(arguments) == Operands(
        ((100,), (800,)), ("BFloat16", "BFloat16"), ("_allgather_base", "8")
    )
    assert collective_operands({"In msg nelems": 0, "Out msg nelems": 0}) is None
    assert collective_operands({"In msg nelems": "many"}) is None


def test_the_reader_keeps_what_a_collective_moved(tmp_path):
    place = {"ph": "X", "pid": 1, "tid": 1, "ts": 0, "dur": 10}
    message = {"In msg nelems": 7, "Out msg nelems": 7, "dtype": "Float", "Collective name": "allreduce"}
    gloo = {"Input Dims": [[5]], "Input type": ["float"]}
    events = [
        {**place, "cat": "cpu_op", "name": "record_param_comms", "args": {**message, "Group size": 2}},
        {**place, "cat": "user_annotation", "name": "gloo:all_reduce", "tid": 2, "args": gloo},
    ]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}), encoding="utf-8")
    operands = read(path).host.operands.values()
    assert sorted(message_bytes(entry) or 0 for entry in operands) == [20, 28]


@pytest.fixture
def fabric():
    """50 µs and 1 GB/s over four ranks."""
    points = tuple(
        MessageTime(size, seconds, seconds, seconds)
        for size in (10**3, 10**6, 10**8)
        for seconds in [50e-6 + size / 1e9]
    )
    return FabricMeasurement(
        "2026-01-01", "cuda", "nccl", False, ("a", "a", "b", "b"), (), (AllReduce(4, 2, points),)
    )


def test_the_fabrics_all_reduce_gives_the_bandwidth_to_compare_with(fabric):
    assert link_bandwidth(fabric, 4) == pytest.approx(1.5e9)
    assert link_bandwidth(fabric, 8) is None
    assert expected_seconds(fabric, 4, 10**7) == pytest.approx(50e-6 + 1e-2)
    assert expected_seconds(fabric, 2, 10**7) is None
