from __future__ import annotations

import itertools
import math
import time
from itertools import pairwise

import pytest
from pytorch_workload import asked, events_of_run, small_network, steps_in, synthetic_batch, torch, workload

from trainmark import probe

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch sees no CUDA device here")

GPU = torch.device("cuda", 0)


def stepping(*arguments: str):
    opt = asked("--device", "cuda", *arguments)
    step = workload.Step(opt, small_network().to(GPU), GPU)
    step.rate.fill_(0.01)
    return step, synthetic_batch(opt, GPU)


def test_the_clock_tells_when_the_device_passed_a_mark_and_not_before():
    clock = probe.EventClock(lambda: torch.cuda.Event(enable_timing=True))
    torch.cuda._sleep(200_000_000)
    mark = clock.mark()
    assert clock.seconds(mark, wait=False) is None
    assert clock.seconds(mark, wait=True) == pytest.approx(time.monotonic(), abs=0.05)


def test_marks_read_late_keep_the_time_between_them():
    clock = probe.EventClock(lambda: torch.cuda.Event(enable_timing=True))
    marks = []
    for _ in range(3):
        torch.cuda._sleep(20_000_000)
        marks.append(clock.mark())
    first, second, third = (clock.seconds(mark, wait=True) for mark in marks)
    assert third - second == pytest.approx(second - first, rel=0.5)


def test_a_captured_step_trains_like_the_plain_one():
    plain, batch = stepping()
    captured, _ = stepping()
    captured.rate.fill_(0)
    replay = workload.CapturedStep(captured, *batch)
    for momentum in captured.optimizer.state.values():
        momentum["momentum_buffer"].zero_()
    captured.rate.fill_(0.01)
    for _ in range(3):
        torch.testing.assert_close(replay(*batch), plain(*batch), rtol=1e-3, atol=1e-3)


def test_a_captured_step_follows_the_rate():
    step, batch = stepping()
    step.rate.fill_(0)
    replay = workload.CapturedStep(step, *batch)
    replay(*batch)
    before = [parameter.detach().clone() for parameter in step.model.parameters()]
    replay(*batch)
    assert all(torch.equal(a, b) for a, b in zip(before, step.model.parameters(), strict=True))
    step.rate.fill_(0.1)
    replay(*batch)
    assert not all(torch.equal(a, b) for a, b in zip(before, step.model.parameters(), strict=True))


def test_an_overflow_leaves_weights_and_momentum_alone_on_the_device():
    step, batch = stepping("--precision", "amp", "--loss-scale", "128")
    some = next(step.model.parameters())
    some.register_hook(lambda gradient: torch.full_like(gradient, math.inf))
    before = [parameter.detach().clone() for parameter in step.model.parameters()]
    step(*batch)
    assert all(torch.equal(a, b) for a, b in zip(before, step.model.parameters(), strict=True))
    assert not any(state["momentum_buffer"].any() for state in step.optimizer.state.values())
    assert step.scaler.get_scale() == 128.0


def test_host_batches_arrive_whole_and_in_turn_while_the_device_is_busy():
    pool = [(torch.full((2, 3, 512, 512), float(n)), torch.full((2,), n)) for n in range(4)]
    pinned = [tuple(part.pin_memory() for part in batch) for batch in pool]
    stream = workload.framework.prefetch(itertools.cycle(pinned), GPU)
    sums = []
    for _ in range(12):
        images, labels = next(stream)
        torch.cuda._sleep(5_000_000)
        sums.append((images.mean(), labels.float().mean()))
    seen = [(image.item(), label.item()) for image, label in sums]
    assert seen == [(float(n), float(n)) for n in range(4)] * 3


@pytest.mark.parametrize(
    "arguments",
    [
        ("--precision", "fp32"),
        ("--precision", "amp", "--layout", "NHWC"),
        ("--precision", "amp", "--loss-scale", "128", "--layout", "NHWC", "--cuda-graph"),
        ("--precision", "bf16", "--layout", "NHWC", "--data", "synthetic-host"),
    ],
    ids=" ".join,
)
def test_a_run_on_the_device_reports_every_step_in_order(arguments, tmp_path):
    steps = steps_in(events_of_run(tmp_path, "--device", "cuda", "--steps", "100", *arguments))
    assert [step.step for step in steps] == list(range(100))
    assert all(before.mono < after.mono for before, after in pairwise(steps))
    assert all(math.isfinite(step.loss) and step.memory > 0 for step in steps)


def test_float32_is_not_tf32_on_the_device(tmp_path):
    if torch.cuda.get_device_capability() < (8, 0):
        pytest.skip("TF32 needs compute capability 8.0")
    arguments = ("--device", "cuda", "--steps", "2", "--precision")
    full = events_of_run(tmp_path, *arguments, "fp32")[-1].facts["peak_flops"]
    (tmp_path / "rank0.jsonl").unlink()
    assert events_of_run(tmp_path, *arguments, "tf32")[-1].facts["peak_flops"] > 2 * full
