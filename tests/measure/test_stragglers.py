"""Ranks and nodes that hold the others back, planted in streams of synchronous steps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from measured_streams import events_of

from trainmark.events import RunStart
from trainmark.measure.breakdown import MOST_STRAGGLERS, stragglers
from trainmark.measure.figure import Window, WindowVerdict
from trainmark.measure.trace import trace_of

STEPS = 60
LEVEL = np.full(STEPS, 0.5)
WHOLE = Window(0, STEPS, WindowVerdict.SETTLED)


def stragglers_in(**stream):
    ranks = len(stream["waits"]) if "waits" in stream else stream.pop("ranks")
    return stragglers(trace_of(events_of(LEVEL, ranks=ranks, **stream)), WHOLE, throughput=100.0)


def test_the_rank_that_waits_least_is_the_straggler():
    (slow,) = stragglers_in(waits=np.array([0.1, 0.1, 0.02, 0.1]))
    assert (slow.rank, slow.node) == (2, None)
    assert (slow.own_seconds, slow.others_seconds) == (pytest.approx(0.48), pytest.approx(0.4))


def test_its_cost_is_what_the_step_would_be_shorter_without_it():
    (slow,) = stragglers_in(waits=np.array([0.1, 0.1, 0.02, 0.1]))
    assert slow.cost == pytest.approx(0.08 / 0.5)
    assert slow.lost == pytest.approx(100 / (1 - 0.16) - 100)


def test_an_excess_of_five_percent_is_not_enough():
    assert stragglers_in(waits=np.array([0.1, 0.1, 0.081, 0.1])) == ()


def test_a_difference_that_comes_and_goes_is_noise():
    waits = np.random.default_rng(1).uniform(0, 0.2, (4, STEPS))
    assert stragglers_in(waits=waits) == ()


def test_a_rank_that_is_slow_in_hardly_more_than_half_of_the_steps_is_not_named():
    waits = np.full((4, STEPS), 0.1)
    waits[2] = np.where(np.arange(STEPS) % 2 == 0, 0.0, 0.12)
    waits[2, 1] = 0.0
    assert stragglers_in(waits=waits) == ()


def test_too_few_steps_name_nobody():
    trace = trace_of(events_of(LEVEL[:5], ranks=2, waits=np.array([0.2, 0.0])))
    assert stragglers(trace, Window(0, 5, WindowVerdict.SETTLED), 100.0) == ()


def test_a_node_of_which_all_ranks_are_slow_is_named_instead_of_its_ranks():
    waits = np.array([0.2, 0.2, 0.0, 0.0, 0.2, 0.2])
    (slow,) = stragglers_in(waits=waits, nodes=["a", "a", "b", "b", "c", "c"])
    assert (slow.rank, slow.node) == (None, "b")


def test_a_single_slow_rank_is_named_with_its_node():
    waits = np.array([0.2, 0.2, 0.2, 0.0, 0.2, 0.2, 0.2, 0.2])
    slow = stragglers_in(waits=waits, nodes=["a"] * 4 + ["b"] * 4)
    assert [(s.rank, s.node) for s in slow] == [(3, "a")]


def test_without_a_word_of_waiting_a_rank_that_ends_late_on_one_clock_is_named():
    (slow,) = stragglers_in(ranks=4, late={3: 0.06})
    assert slow.rank == 3
    assert slow.cost == pytest.approx(0.06 / 0.56)


def test_without_a_word_of_waiting_ranks_on_other_clocks_cannot_be_told_apart():
    assert stragglers_in(ranks=2, late={1: 0.06}, nodes=["a", "b"]) == ()


def test_ranks_that_do_not_wait_for_each_other_are_compared_by_their_steps():
    alone = list(events_of(LEVEL, ranks=2))
    late = [(e.mono - 1000) * 0.2 if e.rank == 1 else 0.0 for e in alone]
    slow = [replace(e, mono=e.mono + by, wall=e.wall + by) for e, by in zip(alone, late, strict=True)]
    (named,) = stragglers(trace_of(slow), WHOLE, 100.0)
    assert (named.rank, named.cost) == (1, pytest.approx(1 - 1 / 1.2))


def test_one_rank_holds_nobody_back():
    assert stragglers_in(ranks=1) == ()


def test_of_many_slow_ranks_only_the_slowest_are_named():
    waits = np.r_[np.full(60, 0.3), np.linspace(0, 0.1, 20)]
    named = stragglers_in(waits=waits)
    assert [slow.rank for slow in named] == list(range(60, 60 + MOST_STRAGGLERS))


def test_a_host_without_a_name_leaves_only_ranks_to_name():
    events = [
        replace(e, facts={}) if isinstance(e, RunStart) and e.rank == 0 else e
        for e in events_of(LEVEL, ranks=2, waits=np.array([0.2, 0.0]), nodes=["a", "b"])
    ]
    assert [(s.rank, s.node) for s in stragglers(trace_of(events), WHOLE, 100.0)] == [(1, "b")]
