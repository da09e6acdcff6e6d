"""Shares of computing and waiting in streams whose parts are known."""

from __future__ import annotations

from dataclasses import astuple, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from measured_streams import events_of

from trainmark.events import Step
from trainmark.measure.breakdown import breakdown_of
from trainmark.measure.figure import Window, WindowVerdict
from trainmark.measure.trace import trace_of

STEPS = 40
LEVEL = np.full(STEPS, 0.5)
WINDOW = Window(10, STEPS, WindowVerdict.SETTLED)


def broken_down(events):
    return breakdown_of(trace_of(events), WINDOW)


def test_shares_are_those_of_the_window_alone():
    waits = np.where(np.arange(STEPS) < 10, 0.4, 0.1) * np.ones((2, 1))
    shares = broken_down(events_of(LEVEL, ranks=2, waits=waits, data_wait=0.05, compute=0.3)).shares
    assert astuple(shares) == pytest.approx((0.6, 0.2, 0.1, 0.1))


def test_what_is_not_told_to_be_computing_counts_as_computing_where_nothing_is_told():
    shares = broken_down(events_of(LEVEL, ranks=2, waits=np.array([0.1, 0.1]), data_wait=0.05)).shares
    assert astuple(shares) == pytest.approx((0.7, 0.2, 0.1, 0.0))


def test_waiting_for_data_beside_the_device_is_not_felt():
    events = events_of(LEVEL, ranks=2, waits=np.array([0.1, 0.1]), data_wait=0.3, compute=0.39)
    assert broken_down(events).shares.data == pytest.approx(0.02)


def test_each_rank_has_its_own_shares_and_node():
    ranks = broken_down(events_of(LEVEL, ranks=2, waits=np.array([0.1, 0.2]), nodes=["a", "b"])).ranks
    assert [(r.rank, r.node) for r in ranks] == [(0, "a"), (1, "b")]
    assert [r.shares.communication for r in ranks] == pytest.approx([0.2, 0.4])
    assert [r.own_seconds for r in ranks] == pytest.approx([0.4, 0.3])


def test_a_straggler_is_kept_apart_from_communication_that_no_rank_escapes():
    parts = broken_down(events_of(LEVEL, ranks=3, waits=np.array([0.15, 0.05, 0.15]))).parts
    assert parts.communication == pytest.approx(0.1)
    assert parts.straggling == pytest.approx(0.2)
    assert parts.compute == pytest.approx(0.7)


def test_the_typical_one_of_two_ranks_is_the_faster_so_that_the_other_straggles():
    parts = broken_down(events_of(LEVEL, ranks=2, waits=np.array([0.05, 0.15]))).parts
    assert (parts.compute, parts.straggling) == (pytest.approx(0.7), pytest.approx(0.2))


def test_one_rank_computes_or_waits_for_data():
    parts = broken_down(events_of(LEVEL, data_wait=0.1)).parts
    assert astuple(parts) == pytest.approx((0.8, 0.2, 0, 0, 0))


def test_one_rank_that_tells_nothing_has_no_breakdown():
    assert broken_down(events_of(LEVEL)) is None


def test_ranks_that_do_not_tell_waiting_have_no_breakdown():
    assert broken_down(events_of(LEVEL, ranks=2, data_wait=0.1)) is None


def test_a_rank_that_does_not_tell_every_step_leaves_no_breakdown():
    events = [
        replace(e, communication=None) if isinstance(e, Step) and (e.rank, e.step) == (1, 20) else e
        for e in events_of(LEVEL, ranks=2, waits=np.array([0.1, 0.1]))
    ]
    assert broken_down(events) is None


@given(arrays(float, (3, STEPS), elements=st.floats(-0.1, 0.9)), st.floats(0, 1), st.floats(0, 1))
def test_shares_and_parts_add_up_to_one_whatever_the_ranks_say(waits, data, compute):
    breakdown = broken_down(events_of(LEVEL, ranks=3, waits=waits, data_wait=data, compute=compute))
    assert sum(astuple(breakdown.shares)) == pytest.approx(1)
    assert sum(astuple(breakdown.parts)) == pytest.approx(1)
    assert min(*astuple(breakdown.shares), *astuple(breakdown.parts)) > -1e-9
