"""The clock between computing and waiting, on a module and a device that do as they are told."""

from __future__ import annotations

import pytest

from trainmark.workloads.common.gradient_clock import STEPS_TO_TELL, EventMarks, GradientClock, Untimed


class Parameter:
    requires_grad = True

    def __init__(self, elements):
        self.elements = elements
        self.hook = None

    def numel(self):
        return self.elements

    def element_size(self):
        return 4

    def register_post_accumulate_grad_hook(self, hook):
        self.hook = hook
        return self

    def remove(self):
        self.hook = None


class Module:
    """Three parameters whose gradients come last to first, reduced in two buckets."""

    def __init__(self, buckets="2 1, 0"):
        self.own = [Parameter(10), Parameter(20), Parameter(30)]
        self.buckets = buckets

    def parameters(self):
        return self.own

    def _get_ddp_logging_data(self):
        return {"rebuilt_per_bucket_param_indices": self.buckets} if self.buckets else {}


class Marks:
    """Every mark is one second after the last."""

    now = 0.0

    def mark(self):
        self.now += 1.0
        return self.now

    @staticmethod
    def between(first, second):
        return second - first


def step(clock, module):
    """Begin, backward, a gradient each, reduced, end: with all three watched, seven seconds."""
    clock.begin()
    with clock:
        for parameter in reversed(module.own):
            if parameter.hook:
                parameter.hook(parameter)
    return {name: read() for name, read in clock.times().items()}


@pytest.fixture
def module():
    return Module()


@pytest.fixture
def clock(module):
    return GradientClock(module, Marks())


def test_waiting_is_from_the_last_gradient_to_the_end_of_the_reduction(clock, module):
    assert step(clock, module) == {"compute": 5.0, "communication": 1.0}


def test_once_the_buckets_are_told_only_their_last_gradients_are_watched(clock, module):
    step(clock, module)
    step(clock, module)
    assert [parameter.hook is not None for parameter in module.own] == [True, True, False]


def test_buckets_are_told_with_their_size_and_when_they_were_ready(clock, module):
    for _ in range(4):
        step(clock, module)
    assert clock.facts()["gradient_buckets"] == [
        {"bytes": 200, "ready_seconds": 1.0},
        {"bytes": 40, "ready_seconds": 2.0},
    ]


def test_where_no_buckets_are_ever_told_the_last_gradient_is_still_watched():
    module = Module(buckets="")
    clock = GradientClock(module, Marks())
    for _ in range(STEPS_TO_TELL + 2):
        times = step(clock, module)
    assert times["communication"] == 1.0
    assert [parameter.hook is not None for parameter in module.own] == [True, False, False]
    assert clock.facts()["gradient_buckets"] == []


def test_a_step_that_no_loop_has_begun_is_let_pass(clock, module):
    with clock:
        module.own[0].hook(module.own[0])
    assert clock.facts() == {}


def test_events_are_read_in_seconds():
    class Event:
        def elapsed_time(self, other):
            return 250.0

    assert EventMarks.between(Event(), Event()) == 0.25


def test_where_nothing_is_timed_nothing_is_told():
    clock = Untimed()
    clock.begin()
    with clock:
        pass
    assert (clock.times(), clock.facts()) == ({}, {})
