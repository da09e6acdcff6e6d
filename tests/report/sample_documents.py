"""Reports to lay out: invented figures of a believable shape, not measurements."""

from __future__ import annotations

import random
from dataclasses import replace
from statistics import median
from typing import Any

from trainmark.measure.doubts import Doubt, DoubtCode, doubt, doubt_in_trials
from trainmark.measure.figure import (
    Breakdown,
    Interval,
    RankTimes,
    Ratio,
    Result,
    StepParts,
    StepTimes,
    Straggler,
    TimeShares,
    Utilisation,
)
from trainmark.measure.key import Key
from trainmark.store.report import Conformance, RunReport, TrialLine
from trainmark.store.series import SampleSeries, StepTrace

HOSTILE = (
    "</script><script>document.documentElement.dataset.ran='1'</script><img src=x onerror=\"alert(1)\">"
    " {{ 7*7 }} & \x1b[31m \u202eevil\u202c | `x` \u2028"
)
AXES = (("image_size", 224),)
GPU = Key("resnet50", "pytorch", "2.8.0", "v1.5", AXES, "amp", "dynamic", "nhwc", None, "synthetic", 256)
DATA_BOUND = doubt(DoubtCode.DATA_BOUND, wait="4.1%")
FEW = doubt(DoubtCode.FEW_TRIALS, n=2, enough=6)
STRAGGLER = doubt(
    DoubtCode.STRAGGLER,
    "late",
    place="5 (gpu-07)",
    excess="3.2%",
    cost="3.1%",
    lost="714",
    unit="images",
)
BUSY = doubt_in_trials(doubt(DoubtCode.HOST_BUSY, share="24%"), 4, 6)


def result(
    key: Key,
    throughput: float,
    baseline: float | None = None,
    n: int = 6,
    doubts: tuple[Doubt, ...] = (),
    spread: float = 0.004,
    **changes: Any,
) -> Result:
    chance = random.Random(str(key))
    trials = tuple(throughput * (1 + chance.gauss(0, spread)) for _ in range(n))
    throughput = median(trials)
    confidence = 1 - 0.5 ** (n - 1)
    interval = Interval(min(trials), max(trials), confidence) if n > 2 else None
    speedup = efficiency = None
    if baseline is not None:
        value = throughput / baseline
        around = Interval(value * 0.993, value * 1.006, 0.95) if n > 2 else None
        speedup = Ratio(value, around)
        share = around and Interval(around.low / key.devices, around.high / key.devices, 0.95)
        efficiency = Ratio(value / key.devices, share)
    step = (key.batch_per_device or 1) * key.devices / throughput
    made = Result(
        key=key,
        throughput=throughput,
        interval=interval,
        n=n,
        unit="images",
        trials=trials,
        speedup=speedup,
        efficiency=efficiency,
        step_times=StepTimes(step, step * 0.998, step * 1.01, step * 1.06, step * 1.4),
        first_step_seconds=21.3,
        warmup_steps=38,
        memory_bytes=61_200_000_000,
        data_wait_share=0.004,
        samples_per_joule=2.31,
        utilisation=Utilisation(0.317, 9.89e14, "known"),
        doubts=doubts,
    )
    return replace(made, **changes)


def case_name(key: Key) -> str:
    return f"{key.framework}-{key.precision}-b{key.batch_per_device}-{key.topology}"


def trial_lines(results: tuple[Result, ...]) -> tuple[TrialLine, ...]:
    return tuple(
        TrialLine(
            case_name(r.key), repeat, "ok", figure, figure * 0.997, figure * 1.003, 38, 0, "",
            f"torchrun --nnodes {r.key.nodes} --nproc-per-node {r.key.devices_per_node} -m"
            f" trainmark.workloads.resnet50.pytorch --precision {r.key.precision}"
            f" --batch {r.key.batch_per_device} --layout nhwc --data synthetic --steps 400 --seed 1",
        )
        for r in results
        for repeat, figure in enumerate(r.trials)
    )  # fmt: skip


def trace(made: Result, points: int = 400) -> StepTrace:
    chance = random.Random(7)
    step = made.step_times.mean
    seconds = [21.3, *(step * (1 + 2 / (i + 1)) for i in range(37))]
    while len(seconds) < points:
        seconds.append(step * (1 + abs(chance.gauss(0, 0.01)) + (0.3 if chance.random() < 0.01 else 0)))
    return StepTrace(case_name(made.key), tuple(seconds), tuple(range(points)), 38, points - 4)


def samples(made: Result, points: int = 120) -> tuple[SampleSeries, ...]:
    def series(index: int) -> SampleSeries:
        chance = random.Random(index)
        load = [0.0 if i < 8 else min(1.0, 0.97 + chance.gauss(0, 0.01)) for i in range(points)]
        return SampleSeries(
            case_name(made.key), f"cuda:{index}", tuple(i * 0.5 for i in range(points)), tuple(load),
            tuple(110 + 560 * share + chance.gauss(0, 6) for share in load),
            tuple(38 + 27 * min(1.0, i / 60) for i in range(points)),
            tuple(1980.0 - (60 if i > 80 else 0) for i in range(points)),
            tuple(6.1e10 if share else 5e8 for share in load),
        )  # fmt: skip

    return tuple(series(index) for index in range(made.key.devices))


ENVIRONMENT: dict[str, Any] = {
    "host": {"name": "gpu-07", "system": "Ubuntu 24.04", "kernel": "6.8.0-45-generic",
             "cpu": {"model": "Intel Xeon Platinum 8480C", "cores": 112, "governor": "performance"},
             "memory_bytes": 2_164_663_517_184},
    "devices": [{"index": i, "name": "NVIDIA H200", "memory_bytes": 150_754_820_096, "power_limit_watts": 700,
                 "driver": "570.124.06", "bus": f"0000:{18 + 17 * i:02x}:00.0"} for i in range(8)],
    "topology": {"matrix": "\tGPU0\tGPU1\tGPU2\nGPU0\t X \tNV18\tNV18\nGPU1\tNV18\t X \tNV18"},
    "libraries": {"cuda": "12.8", "cudnn": "9.10.2", "nccl": "2.27.3", "dali": None},
    "fabric": {"links": ["mlx5_0", "mlx5_1"], "rate_gbps": 400},
    "software": {"python": "3.11.7", "torch": "2.8.0"},
    "git": {"commit": "bc421e0d9f", "dirty": False},
    "container": None,
}  # fmt: skip

SUITE = (
    "name: h200\nworkload: resnet50\nmatrix:\n  precision: [fp32, amp]\n  devices: [1, 2, 4, 8]\ntrials: 6\n"
)


def h200() -> RunReport:
    """Two series from one to eight devices, with doubts and failures."""
    single = replace(GPU, precision="fp32", loss_scale=None, batch_per_device=128, device="NVIDIA H200")
    amp = replace(GPU, device="NVIDIA H200")
    figures = []
    for key, one, shares in (
        (amp, 2904.4, (1, 0.985, 0.973, 0.959)),
        (single, 903.2, (1, 0.991, 0.984, 0.979)),
    ):
        for devices, share in zip((1, 2, 4, 8), shares, strict=True):
            doubts = (DATA_BOUND, STRAGGLER) if (devices, key.precision) == (8, "amp") else ()
            n = 5 if devices == 4 else 6
            placed = replace(key, devices_per_node=devices)
            figures.append(result(placed, one * devices * share, one, n, doubts))
    results = tuple(figures)
    failed = tuple(
        TrialLine(
            "pytorch-fp32-b512-1n8g", repeat, "oom", None, None, None, None, 1,
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.53 GiB: lower batch_per_device.",
            "torchrun --nproc-per-node 8 -m trainmark.workloads.resnet50.pytorch --batch 512",
        )
        for repeat in range(3)
    )  # fmt: skip
    return RunReport(
        "h200-resnet50", "Does one node scale from one GPU to all of them?",
        "2025-11-14T09:30:00+00:00", SUITE, "0.1.0", "trainmark run h200.yaml --trials 6", results,
        trial_lines(results) + failed, (("oneflow-amp-b256-1n8g", "oneflow is not installed: see docs."),),
        tuple(trace(r) for r in results), tuple(s for r in results for s in samples(r)), ENVIRONMENT,
    )  # fmt: skip


def cpu() -> RunReport:
    """Two points, two trials each, no device samples."""
    key = replace(GPU, precision="fp32", loss_scale=None, batch_per_device=8, device="cpu", layout="nchw")
    plain: dict[str, Any] = {"samples_per_joule": None, "utilisation": None}
    two = replace(key, devices_per_node=2)
    results = (
        result(key, 12.41, 12.41, 2, (FEW,), **plain),
        result(two, 17.9, 12.41, 2, (FEW,), **plain),
    )
    return replace(
        h200(), results=results, trials=trial_lines(results), skipped=(),
        traces=(trace(results[0], 60),), samples=(), environment={"host": {"cpu": "EPYC"}, "devices": []},
    )  # fmt: skip


def six() -> RunReport:
    """Six frameworks on one CPU device and on two; paddle is not conformant, oneflow not checked."""
    shared = replace(
        GPU,
        precision="fp32",
        loss_scale=None,
        batch_per_device=4,
        axes=(("image_size", 64),),
        device="EPYC",
        threads=1,
    )
    figures, marks = [], {}
    for framework, version, layout, one, share, first, settling in (
        ("pytorch", "2.13.0", "NCHW", 31.2, 0.93, 0.41, 3),
        ("jax", "0.6.2", "NHWC", 27.4, 0.88, 14.2, 2),
        ("tensorflow", "2.19.0", "NHWC", 24.9, 0.9, 11.7, 4),
        ("paddle", "3.1.0", "NCHW", 21.3, 0.86, 0.9, 3),
        ("oneflow", "0.9.0", "NCHW", 18.8, 0.91, 6.3, None),
        ("mindspore", "2.6.0", "NCHW", 9.7, 0.77, 21.5, 1),
    ):
        key = replace(shared, framework=framework, framework_version=version, layout=layout)
        plain: dict[str, Any] = {
            "samples_per_joule": None,
            "utilisation": None,
            "memory_bytes": int(one * 5e7),
        }
        plain |= {"first_step_seconds": first, "settling_steps": settling, "warmup_steps": 3}
        doubts = (STRAGGLER,) if framework == "oneflow" else ()
        for placed, rate in ((key, one), (replace(key, devices_per_node=2), 2 * share * one)):
            made = result(placed, rate, one, 6, doubts, 0.012, **plain)
            alone = Ratio(1.0, Interval(1.0, 1.0, 1.0)) if placed is key else made.speedup
            figures.append(replace(made, speedup=alone))
            marks[placed] = Conformance(True, (), "2026-01-31")
            if framework == "paddle":
                differs = ("the loss after 5 steps is 6.912, the reference has 6.884", "BatchNorm momentum")
                marks[placed] = Conformance(False, differs, "2026-01-31")
            if framework == "oneflow":
                del marks[placed]
    results = tuple(figures)
    return replace(
        cpu(), results=results, conformance=marks,
        trials=trial_lines(results),
        skipped=(("mxnet-fp32-b4-1n1g-any-s64", "mxnet is not installed: `trainmark frameworks install`"),),
    )  # fmt: skip


def parts(devices: int, nodes: int, efficiency: float, slow: int | None = None) -> Breakdown:
    """What steps of 120 ms at that efficiency may be made of; node `slow` has the slower ranks."""
    own = 0.99 * efficiency + 0.02
    straggling = 0.112 if slow is not None else 0.0
    communication = 1 - own - straggling
    rank_times = []
    for rank in range(devices):
        node = rank * nodes // devices
        working = own + straggling if node == slow else own
        shares = TimeShares(working - 0.02, 1 - working, 0.015, 0.005)
        rank_times.append(RankTimes(rank, f"node{node}", shares, 0.12 * working))
    waiting = sum(rank.shares.communication for rank in rank_times) / devices
    shares = TimeShares(0.98 - waiting, waiting, 0.015, 0.005)
    return Breakdown(
        shares, StepParts(own - 0.02, 0.015, 0.005, straggling, communication), tuple(rank_times)
    )


def cluster() -> RunReport:
    """Weak scaling to four nodes, one of which is slow, and one batch shared by one device to eight."""
    key = replace(GPU, device="NVIDIA H200")
    alone = Breakdown(TimeShares(0.985, 0, 0.01, 0.005), StepParts(0.985, 0.01, 0.005, 0, 0), ())
    slow = Straggler(None, "node2", 0.111, 0.098, 0.112, 9_050.0)
    figures = [result(key, 2904.4, 2904.4, breakdown=alone)]
    for nodes, devices, share in ((1, 8, 0.93), (2, 8, 0.89), (4, 8, 0.804)):
        placed = replace(key, nodes=nodes, devices_per_node=devices)
        slow_node = 2 if nodes == 4 else None
        fields: dict[str, Any] = {"breakdown": parts(nodes * devices, nodes, share, slow_node)}
        fields |= {"stragglers": (slow,)} if slow_node else {}
        figures.append(result(placed, 2904.4 * nodes * devices * share, 2904.4, **fields))
    for devices, share in ((2, 0.94), (4, 0.85), (8, 0.66)):
        placed = replace(key, devices_per_node=devices, batch_per_device=256 // devices)
        figures.append(result(placed, 2904.4 * devices * share, breakdown=parts(devices, 1, share)))
    results = tuple(figures)
    return replace(
        h200(), results=results, trials=trial_lines(results),
        traces=(trace(results[0]),), samples=(), skipped=(),
    )  # fmt: skip


def single() -> RunReport:
    """One result, no baseline."""
    only = (result(replace(GPU, device="NVIDIA H200"), 2904.4),)
    return replace(
        h200(),
        results=only,
        trials=trial_lines(only),
        skipped=(),
        traces=(trace(only[0]),),
        samples=samples(only[0]),
    )


def empty() -> RunReport:
    """Every trial failed."""
    document = h200()
    return replace(document, results=(), traces=(), samples=(), trials=document.trials[-3:])


def hostile() -> RunReport:
    """Text that tries to be markup, script, template and terminal control, wherever text can stand."""
    document = h200()
    keyed = replace(GPU, framework=HOSTILE, layout=HOSTILE, device=HOSTILE)
    doubts = (Doubt(DoubtCode.THROTTLED, HOSTILE),)
    results = (
        result(keyed, 100.0, 100.0, doubts=doubts, unit=HOSTILE),
        result(replace(keyed, devices_per_node=2), 190.0, 100.0, doubts=doubts, unit=HOSTILE),
    )
    bad = TrialLine(HOSTILE, 0, HOSTILE, None, None, None, None, 0, HOSTILE, HOSTILE)
    return replace(
        document, name=HOSTILE, about=HOSTILE, created=HOSTILE, suite=HOSTILE, version=HOSTILE,
        command=HOSTILE, results=results, trials=(bad,), skipped=((HOSTILE, HOSTILE),),
        traces=(replace(document.traces[0], case=HOSTILE), replace(document.traces[1], case=HOSTILE)),
        samples=(replace(document.samples[0], case=HOSTILE, device=HOSTILE),),
        environment={HOSTILE: {HOSTILE: HOSTILE, "block": HOSTILE + "\n" + HOSTILE, "list": [HOSTILE]},
                     "devices": [{HOSTILE: HOSTILE}, {HOSTILE: 1}]},
    )  # fmt: skip


def large(cases: int = 200, repeats: int = 50) -> RunReport:
    """Many cases with many trials each."""
    results = tuple(
        result(
            replace(GPU, batch_per_device=8 * (1 + i // 4), devices_per_node=2 ** (i % 4)),
            2900.0 * 2 ** (i % 4),
            2900.0,
            repeats,
        )
        for i in range(cases)
    )
    traces = tuple(trace(r, 2000) for r in results)
    return replace(h200(), results=results, trials=trial_lines(results), traces=traces)
