"""The clocks of devices that run behind the host, on stand-ins for PyTorch and JAX that lag on request."""

from __future__ import annotations

import sys
import threading
import time
from types import SimpleNamespace
from typing import ClassVar

import pytest

from trainmark import probe
from trainmark.events import Step
from trainmark.events.stream import read
from trainmark.probe import EventClock, LossClock


class Loss:
    """A number that is not there before the device has passed its step."""

    def __init__(self, number: float) -> None:
        self.number = number
        self.there = threading.Event()

    def value(self) -> float:
        assert self.there.wait(30)
        return self.number


class Event:
    """Like a CUDA event: recorded in a stream, passed when the device comes to it."""

    device: ClassVar[list[float]] = [0.0]
    made: ClassVar[int] = 0

    def __init__(self, enable_timing: bool = True) -> None:
        assert enable_timing
        Event.made += 1
        self.at = float("inf")
        self.stream: object = "current"

    def record(self, stream: object = "current") -> None:
        self.at, self.stream = self.device[0], stream

    def query(self) -> bool:
        return self.device[0] >= self.at

    def synchronize(self) -> None:
        self.device[0] = max(self.device[0], self.at)

    def elapsed_time(self, other: Event) -> float:
        return (other.at - self.at) * 1e3


def test_a_step_is_not_over_before_its_loss_is_there():
    clock = LossClock(Loss.value)
    loss = Loss(6.9)
    read = clock.read(loss)
    mark = clock.mark()
    assert clock.seconds(mark, wait=False) is None
    before = time.monotonic()
    loss.there.set()
    assert before <= clock.seconds(mark, wait=True) <= time.monotonic()
    assert read() == 6.9
    clock.close()


def test_the_losses_of_several_steps_in_flight_stay_apart():
    clock = LossClock(Loss.value)
    losses = [Loss(number) for number in range(3)]
    reads, marks = zip(*((clock.read(loss), clock.mark()) for loss in losses), strict=True)
    for loss in losses:
        loss.there.set()
    assert [read() for read in reads] == [0, 1, 2]
    times = [clock.seconds(mark, wait=True) for mark in marks]
    assert times == sorted(times)
    clock.close()


def test_an_event_clock_adds_up_what_the_device_says_between_its_events():
    clock = EventClock(Event)
    first = clock.mark()
    begin = clock.seconds(first, wait=True)
    Event.device[0] += 0.25
    second = clock.mark()
    second.at = Event.device[0] + 0.5  # the device is not there yet
    assert clock.seconds(second, wait=False) is None
    assert clock.seconds(second, wait=True) - begin == 0.75


def test_events_are_used_again_once_the_device_has_passed_them():
    clock, Event.made = EventClock(Event), 0
    for _ in range(100):
        Event.device[0] += 0.1
        assert clock.seconds(clock.mark(), wait=False) is not None
    assert Event.made == 1  # beside the one of the clock's start


@pytest.fixture
def events(tmp_path, monkeypatch):
    monkeypatch.setenv(probe.EVENTS_FOLDER, str(tmp_path))
    return tmp_path / "rank0.jsonl"


def torch_with(gpus: int) -> SimpleNamespace:
    cuda = SimpleNamespace(
        is_available=lambda: gpus > 0,
        current_device=lambda: 0,
        current_stream=lambda device: f"stream of {device}",
        Event=Event,
    )
    return SimpleNamespace(cuda=cuda)


@pytest.mark.parametrize(("name", "stream"), [("cuda", "stream of 0"), ("cuda:1", "stream of 1")])
def test_the_clock_cuda_records_timed_events_on_the_current_stream_of_its_gpu(
    name, stream, events, monkeypatch
):
    monkeypatch.setitem(sys.modules, "torch", torch_with(gpus=2))
    run = probe.start(clock=name)
    assert run._clock.mark().stream == stream
    run.step(samples=1)
    Event.device[0] += 0.5
    run.step(samples=1)
    run.end()
    start, first, second, _ = read(events)
    assert start.facts == {"clock": "cuda"}
    assert second.mono - first.mono == pytest.approx(0.5)


def test_the_clock_cuda_is_the_hosts_where_pytorch_sees_no_gpu(events, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", torch_with(gpus=0))
    run = probe.start(clock="cuda")
    run.step(samples=1)
    run.end()
    assert next(read(events)).facts == {"clock": "host"}


def fake_jax(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "jax", SimpleNamespace(block_until_ready=lambda array: array.value()))


@pytest.mark.parametrize("name", ["ready", "loss"])
def test_the_clock_jax_ends_a_step_when_its_array_is_there(name, events, monkeypatch):
    fake_jax(monkeypatch)
    monkeypatch.setattr(Loss, "__float__", lambda loss: loss.number, raising=False)
    loss = Loss(0.5)
    run = probe.start(clock="jax")
    run.step(1, **{name: loss})
    run.flush()
    assert [type(event) is Step for event in read(events)] == [False]
    returned = time.monotonic()
    loss.there.set()
    run.end()
    start, step, _ = read(events)
    assert start.facts == {"clock": "jax"}
    assert step.mono >= returned
    assert step.loss == (0.5 if name == "loss" else None)


def test_a_step_without_an_array_is_refused_by_the_clock_jax(events, monkeypatch):
    fake_jax(monkeypatch)
    run = probe.start(clock="jax")
    with pytest.raises(ValueError, match="ready=loss"):
        run.step(1, loss=lambda: 0.5)


def test_a_program_that_waits_for_its_device_says_so_and_one_with_its_own_clock_too(events):
    class OwnClock:
        def mark(self):
            return 0.0

        def seconds(self, mark, wait):
            return time.monotonic()

    for clock in ("synchronous", OwnClock()):
        run = probe.start(clock=clock)
        run.step(1)
        run.end()
    starts = [event for event in read(events) if hasattr(event, "world_size")]
    assert [start.facts["clock"] for start in starts] == ["synchronous", "own"]


def test_an_unknown_clock_is_refused_by_name_before_a_file_is_made(events):
    with pytest.raises(ValueError, match="no clock is called 'rocm'"):
        probe.start(clock="rocm")
    assert not events.exists()
