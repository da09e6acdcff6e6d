"""Steps of an untouched program that hold more than training, and what its figure says of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from measured_streams import events_of, trace_from

from trainmark.events import Mark, Step
from trainmark.measure.breakdown import long_steps
from trainmark.measure.doubts import DoubtCode
from trainmark.measure.figure import Pauses
from trainmark.measure.trace import trace_of
from trainmark.measure.trial import WindowRules, measure_trial

USUAL = np.full(120, 0.5)


def with_long(places, seconds):
    steps = USUAL.copy()
    steps[places] = seconds
    return steps


def doubts_of(facts, steps=USUAL):
    trace = trace_from(steps)
    trace = replace(trace, facts={**trace.facts, "source": "a hook", **facts})
    return {each.code: each.message for each in measure_trial(trace, WindowRules(warmup_steps=10)).doubts}


def test_a_tenth_of_the_steps_that_takes_half_of_the_time_is_doubted_with_the_rate_without_it():
    message = doubts_of({}, with_long(slice(19, None, 10), 5.0))[DoubtCode.LONG_STEPS]
    assert message.startswith(
        "11 of 110 steps, one every 10, take 47.4% of the time beyond a usual step (500 ms)"
    )


def test_the_same_is_not_asked_of_a_program_that_calls_the_probe():
    trace = trace_from(with_long(slice(19, None, 10), 5.0))
    codes = {each.code for each in measure_trial(trace, WindowRules(warmup_steps=10)).doubts}
    assert DoubtCode.LONG_STEPS not in codes


@pytest.mark.parametrize(
    ("places", "seconds", "every"),
    [
        (slice(9, None, 12), 1.25, 12),
        ([5, 40, 41, 100], 8.0, None),
        ([60], 10.0, None),
    ],
)
def test_what_stands_out_is_told_with_its_distance_where_there_is_one(places, seconds, every):
    doubtful = long_steps(with_long(places, seconds), None)
    assert doubtful is not None and doubtful.every == every
    assert doubtful.seconds == pytest.approx(doubtful.count * (seconds - 0.5))


@pytest.mark.parametrize(
    "steps",
    [
        USUAL,
        with_long([5, 40, 41, 100], 1.25),  # stalls of a few percent
        with_long(slice(0, None, 4), 1.0),  # a quarter of the steps is no exception
        np.random.default_rng(7).lognormal(0, 0.5, 2000),  # batches of unequal lengths
    ],
)
def test_ordinary_unrest_is_not_told(steps):
    assert long_steps(steps, None) is None


def test_steps_that_waited_for_data_are_not_taken_for_evaluations():
    steps = with_long(slice(9, None, 16), 5.0)
    assert long_steps(steps, steps - 0.5) is None


def test_where_the_usual_step_takes_no_time_none_is_longer_than_it():
    assert long_steps(np.tile([0.4, *[0.0] * 19], 6), None) is None


def test_other_trainings_and_unequal_turns_are_doubted():
    assert "2 more of the program's" in doubts_of({"uncounted_trainings": 2})[DoubtCode.TRAINING_UNCOUNTED]
    assert "50 : 5 times" in doubts_of({"unequal_turns": "50 : 5"})[DoubtCode.UNEQUAL_TURNS]


def test_an_evaluation_in_every_step_is_doubted_with_the_rate_without_it():
    doubts = doubts_of({"evaluating_share": 0.25})
    assert "for 25.0% of the time" in doubts[DoubtCode.EVALUATION_IN_STEPS]
    assert DoubtCode.EVALUATION_IN_STEPS not in doubts_of({"evaluating_share": 0.01})


def test_pauses_that_were_told_are_summed_by_their_kind():
    events = []
    for event in events_of(USUAL):
        events.append(event)
        if isinstance(event, Step) and event.step in (3, 50, 70):
            facts = {"pause": "checkpoint", "seconds": 0.25, "trained_before": 0.0}
            events.append(Mark("checkpoint", 0, event.mono + 0.25, event.wall + 0.25, facts))
    figure = measure_trial(trace_of(events), WindowRules(warmup_steps=10))
    assert figure.pauses == (Pauses("checkpoint", 2, 0.5),)
