from __future__ import annotations

import threading
import time
from typing import ClassVar

from trainmark.workloads.common.clocks.clocks import EventClock, LossClock


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

    def __init__(self) -> None:
        self.at = float("inf")

    def record(self) -> None:
        self.at = self.device[0]

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
