"""The rate of a loader alone."""

from __future__ import annotations

import itertools

import pytest

from trainmark.workloads.common import loader_rate


def test_every_batch_after_the_warm_up_is_counted_once():
    drawn = itertools.count()
    count, seconds, _ = loader_rate.timed(drawn, seconds=0.02, warm_seconds=0.0)
    assert next(drawn) == loader_rate.WARM_BATCHES + count
    assert seconds >= 0.02


def test_batches_that_run_out_end_the_measurement():
    assert loader_rate.timed(iter(range(7)), seconds=60.0, warm_seconds=0.0)[0] == 3


def test_the_cpu_time_is_that_of_the_given_clock_between_the_two_readings():
    readings = iter([5.0, 7.5])
    cpu = loader_rate.timed(iter(range(9)), 60.0, 0.0, cpu_seconds=lambda: next(readings))[2]
    assert cpu == pytest.approx(2.5)
