"""The line behind the times: found where it is, and not bent by a size that falls off it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from known_fabrics import SIZES

from trainmark.measure.fabric import AllReduce, MessageTime, bus_factor, fit_alpha_beta, message_time

latencies = st.floats(1e-7, 1.0)
bandwidths = st.floats(1e5, 1e12)


@given(latencies, bandwidths)
def test_times_on_a_line_give_that_line(latency, bandwidth):
    line = fit_alpha_beta([(size, latency + size / bandwidth) for size in SIZES])
    predicted = [line.latency_seconds + size / line.bytes_per_second for size in SIZES]
    assert predicted == pytest.approx([latency + size / bandwidth for size in SIZES], rel=1e-9)


@given(st.sampled_from(range(1, len(SIZES) - 1)), st.floats(1.5, 50))
def test_one_size_off_the_line_does_not_bend_it(place, factor):
    times = [(size, 2e-5 + size / 1e10) for size in SIZES]
    times[place] = (times[place][0], factor * times[place][1])
    line = fit_alpha_beta(times)
    assert line.latency_seconds == pytest.approx(2e-5, rel=0.05)
    assert line.bytes_per_second == pytest.approx(1e10, rel=0.05)


@given(st.lists(st.tuples(st.integers(1, 1 << 30), st.floats(1e-9, 1e3)), min_size=1, max_size=9))
def test_whatever_the_times_neither_number_is_below_zero(times):
    line = fit_alpha_beta(times)
    assert line.latency_seconds >= 0
    assert line.bytes_per_second is None or line.bytes_per_second > 0


@given(st.permutations([(size, 3e-5 + size / 4e9) for size in SIZES]))
def test_the_order_of_the_sizes_does_not_matter(times):
    assert fit_alpha_beta(times) == fit_alpha_beta(sorted(times))


def test_times_that_do_not_grow_have_no_bandwidth():
    assert fit_alpha_beta([(size, 1e-3) for size in SIZES]).bytes_per_second is None


def test_a_point_is_the_median_in_an_interval():
    assert message_time(8, [[1.0, 60.0], [2.0, 5.0], [3.0, 4.0]]) == MessageTime(8, 3.5, 1.0, 60.0)


def test_a_single_time_is_its_own_interval():
    assert message_time(8, [[2.0]]) == MessageTime(8, 2.0, 2.0, 2.0)


def test_a_turn_unlike_the_others_widens_the_interval_and_leaves_the_median():
    even = [1.0 + place / 1000 for place in range(70)]
    summary = message_time(8, [even, [9.0] * 70, even])
    assert summary.seconds < 1.1
    assert (summary.low, summary.high) == (pytest.approx(1.0, rel=0.1), 9.0)


def test_the_bus_of_an_all_reduce_carries_twice_the_message_less_the_own_share():
    assert bus_factor(2) == 1.0
    assert bus_factor(8) == 1.75
    reduced = AllReduce(8, 1, (MessageTime(1000, 0.5, 0.5, 0.5),))
    assert reduced.bus_bytes_per_second(reduced.points[0]) == 3500.0
