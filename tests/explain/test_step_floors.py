"""Floors of classes from measured peaks."""

from __future__ import annotations

import pytest

from trainmark.explain.breakdown import with_floors
from trainmark.explain.explanation import ClassTime, MeasuredPeaks
from trainmark.explain.operator_cost import Work

PEAKS = MeasuredPeaks(flops=1e12, bandwidth=1e11)


def floor_of(
    work: Work, peaks: MeasuredPeaks = PEAKS, steps: int = 2, name: str = "matrix product"
) -> ClassTime:
    (time,) = with_floors([ClassTime(name, 10, 10, 1)], {name: work}, peaks, steps)
    return time


@pytest.mark.parametrize(
    ("work", "floor", "bound"),
    [
        (Work(flop=1e9, bytes=1e6), 2_000_000, "arithmetic"),
        (Work(flop=1e9, bytes=1e9), 20_000_000, "memory"),
        (Work(flop=None, bytes=1e6), 20_000, "memory"),
        (Work(flop=None, bytes=None), None, None),
    ],
)
def test_the_longer_of_arithmetic_and_memory_binds_over_all_steps(work, floor, bound):
    time = floor_of(work)
    assert (time.floor, time.bound) == (floor, bound)
    assert time.flop == (None if work.flop is None else 2 * work.flop)


def test_without_a_peak_there_is_no_floor():
    assert floor_of(Work(flop=1e9), MeasuredPeaks(bandwidth=1e11)).floor is None


def test_bytes_alone_are_no_floor_of_what_multiplies():
    time = floor_of(Work(flop=1e9, bytes=1e6), MeasuredPeaks(bandwidth=1e11))
    assert (time.flop, time.bytes, time.floor, time.bound) == (2e9, 2e6, None, None)


def test_communication_has_no_floor_by_memory():
    assert floor_of(Work(bytes=1e9), name="communication").floor is None


def test_a_class_without_counted_work_stays_as_it_is():
    time = ClassTime("other", 10, 10, 1)
    assert with_floors([time], {}, PEAKS, 1) == (time,)
