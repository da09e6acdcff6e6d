"""How often a message is sent, on a clock that the message itself moves."""

from __future__ import annotations

from collections import Counter

from trainmark.workloads.fabric import schedule
from trainmark.workloads.fabric.schedule import (
    LEAST_REPETITIONS,
    MOST_REPETITIONS,
    TURNS_PER_LINK,
    WARM_UP_REPETITIONS,
    repeat_by_size,
)


class Wire:
    """A link with a known line, which counts its messages."""

    def __init__(self, latency, bandwidth):
        self.latency, self.bandwidth = latency, bandwidth
        self.now = 0.0
        self.sent = Counter()

    def operation(self, size):
        def once():
            self.sent[size] += 1
            self.now += self.latency + size / self.bandwidth

        return once

    def measured(self, sizes, seconds, agree=lambda number: number):
        return dict(repeat_by_size(sizes, seconds, self.operation, agree, lambda: self.now))


def test_every_size_is_measured_and_its_warm_up_is_not_counted():
    wire = Wire(1e-3, 1e9)
    times_by_size = wire.measured([8, 1024], 1.0)
    assert set(times_by_size) == {8, 1024}
    assert all(wire.sent[size] == len(times) + WARM_UP_REPETITIONS for size, times in times_by_size.items())


def test_a_quick_link_is_not_measured_without_end():
    assert {len(times) for times in Wire(1e-9, 1e12).measured([8, 64], 5.0).values()} == {MOST_REPETITIONS}


def test_a_slow_link_is_measured_often_enough_for_an_interval():
    times_by_size = Wire(0.2, 1e9).measured([8, 1024], 0.5)
    assert {len(times) for times in times_by_size.values()} == {LEAST_REPETITIONS}
    assert TURNS_PER_LINK * LEAST_REPETITIONS >= 6


def test_a_size_that_would_take_far_too_long_is_left_out():
    wire = Wire(1e-4, 1e6)
    assert set(wire.measured([8, 1 << 10, 1 << 14, 1 << 20, 1 << 26], 0.3)) == {8, 1 << 10, 1 << 14}
    assert wire.sent[1 << 20] == 0


def test_a_long_latency_alone_leaves_no_size_out():
    sizes = [8, 1 << 10, 1 << 17, 1 << 20]
    assert set(Wire(0.2, 1e9).measured(sizes, 2.0)) == set(sizes)


def test_the_time_asked_for_is_about_the_time_it_takes():
    wire = Wire(1e-3, 1e9)
    wire.measured([8, 1 << 10, 1 << 17, 1 << 20], 0.4)
    assert 0.2 < wire.now < 0.5


def test_one_who_follows_repeats_as_often_as_the_one_who_decides():
    counts = []
    decided = Wire(1e-3, 1e9).measured([8, 1 << 20], 0.3, lambda number: counts.append(number) or number)
    remaining = iter(counts)
    followed = Wire(5e-2, 1e7).measured([8, 1 << 20], 0.3, lambda _: next(remaining))
    assert {size: len(times) for size, times in decided.items()} == {
        size: len(times) for size, times in followed.items()
    }


def test_the_next_size_is_expected_on_the_line_through_the_last_two():
    assert schedule.expected_seconds([], 8) == 0
    assert schedule.expected_seconds([(8, 0.5)], 1024) == 0.5
    assert schedule.expected_seconds([(0, 1.0), (10, 2.0)], 20) == 3.0
