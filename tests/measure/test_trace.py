from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from measured_streams import STARTED, WALL_OFFSET, events_of

from trainmark.events import Mark, RunStart, Scope, Step
from trainmark.measure.trace import TraceError, trace_of

TEN_STEPS = np.full(10, 0.5)


def test_samples_of_all_ranks_are_summed_when_each_counts_its_own():
    assert trace_of(events_of(TEN_STEPS, samples=64, ranks=4)).samples.tolist() == [256] * 10


def test_global_samples_are_taken_from_rank_0_and_never_summed():
    assert (
        trace_of(events_of(TEN_STEPS, samples=256, ranks=4, scope=Scope.GLOBAL)).samples.tolist()
        == [256] * 10
    )


def test_a_log_of_rank_0_alone_speaks_for_all_ranks_when_its_samples_are_global():
    events = [
        replace(e, world_size=8) if isinstance(e, RunStart) else e
        for e in events_of(TEN_STEPS, scope=Scope.GLOBAL)
    ]
    assert trace_of(events).world_size == 8


def test_a_step_ends_when_its_latest_rank_ends():
    trace = trace_of(events_of(TEN_STEPS, ranks=3, late={1: 0.25}))
    assert trace.ends[0] == pytest.approx(STARTED + 0.75)


def test_steps_begin_when_the_latest_rank_starts():
    events = list(events_of(TEN_STEPS, ranks=2))
    events[0] = replace(events[0], mono=STARTED - 5, wall=STARTED - 5 + WALL_OFFSET)
    assert trace_of(events).start == STARTED


def test_only_steps_that_every_rank_finished_count():
    events = [
        e for e in events_of(TEN_STEPS, ranks=2) if not (isinstance(e, Step) and e.rank == 1 and e.step > 6)
    ]
    assert len(trace_of(events).ends) == 7


def test_ranks_on_another_host_are_brought_onto_one_clock():
    def elsewhere(event):
        return replace(event, mono=event.mono + 777_000) if event.rank == 1 else event

    here = trace_of(events_of(TEN_STEPS, ranks=2))
    apart = trace_of(map(elsewhere, events_of(TEN_STEPS, ranks=2)))
    assert apart.ends == pytest.approx(here.ends)


@pytest.mark.parametrize("named", [True, False])
def test_a_host_whose_clock_is_off_changes_no_step_time(named):
    def elsewhere(event):
        return replace(event, mono=event.mono + 777_000, wall=event.wall + 0.7) if event.rank == 1 else event

    seconds = np.linspace(0.3, 0.6, 30)
    here = trace_of(events_of(seconds, ranks=2))
    apart = trace_of(map(elsewhere, events_of(seconds, ranks=2, nodes=["a", "b"] if named else None)))
    assert apart.ends == pytest.approx(here.ends)
    assert (here.one_clock, apart.one_clock) == (True, False)


def test_hosts_that_booted_together_are_told_apart_by_their_names():
    def elsewhere(event):
        return replace(event, mono=event.mono + 0.7, wall=event.wall + 0.7) if event.rank == 1 else event

    apart = trace_of(map(elsewhere, events_of(TEN_STEPS, ranks=2, nodes=["a", "b"])))
    assert apart.step_seconds == pytest.approx(TEN_STEPS)


def test_each_rank_keeps_its_own_parts_of_a_step():
    events = events_of(TEN_STEPS, ranks=2, waits=np.array([0.1, 0.2]), nodes=["a", "b"], compute=0.3)
    trace = trace_of(events)
    assert trace.nodes == ("a", "b")
    assert trace.rank_communication[:, 3].tolist() == [0.1, 0.2]
    assert trace.rank_compute.shape == (2, 10)
    assert trace.rank_data_wait is None


def test_parts_that_some_steps_do_not_tell_are_unknown():
    events = [
        replace(e, compute=None) if isinstance(e, Step) and e.step == 0 else e
        for e in events_of(TEN_STEPS, compute=0.3, data_wait=0.1)
    ]
    assert trace_of(events).rank_compute is None
    assert trace_of(events).rank_data_wait is not None


def test_wall_time_serves_where_monotonic_time_is_missing():
    trace = trace_of(replace(event, mono=None) for event in events_of(TEN_STEPS))
    assert trace.start == STARTED + WALL_OFFSET
    assert trace.step_seconds == pytest.approx(TEN_STEPS)


def test_a_start_without_time_makes_the_first_step_the_start():
    events = [
        replace(e, mono=None, wall=None) if isinstance(e, RunStart) else e
        for e in events_of(TEN_STEPS, loss=1.0)
    ]
    trace = trace_of(events)
    assert (len(trace.ends), len(trace.losses), trace.start) == (9, 9, STARTED + 0.5)


def test_the_samples_of_a_step_that_only_serves_as_start_are_not_counted():
    events = [
        replace(e, mono=None, wall=None) if isinstance(e, RunStart) else e for e in events_of(TEN_STEPS)
    ]
    events = [replace(e, samples=1000) if isinstance(e, Step) and e.step == 0 else e for e in events]
    assert trace_of(events).samples.tolist() == [64] * 9


def test_losses_are_the_mean_over_the_ranks_that_report():
    events = [
        replace(e, loss=[2.0, 4.0, None][e.rank] if e.step % 2 else None) if isinstance(e, Step) else e
        for e in events_of(TEN_STEPS, ranks=3)
    ]
    trace = trace_of(events)
    assert trace.loss_steps.tolist() == [1, 3, 5, 7, 9]
    assert trace.losses.tolist() == [3.0] * 5


def test_the_longest_wait_and_the_most_memory_over_the_ranks_count():
    events = [
        replace(e, data_wait=0.1 * e.rank, memory=1000 + e.rank) if isinstance(e, Step) else e
        for e in events_of(TEN_STEPS, ranks=3)
    ]
    trace = trace_of(events)
    assert trace.data_wait == pytest.approx(np.full(10, 0.2))
    assert trace.memory == 1002


def test_what_no_rank_reports_is_unknown_rather_than_zero():
    trace = trace_of(events_of(TEN_STEPS))
    assert (trace.data_wait, trace.memory, trace.losses.size) == (None, None, 0)


def test_marks_between_the_steps_change_nothing():
    events = list(events_of(TEN_STEPS))
    marked = [*events[:4], Mark("eval", 0, STARTED + 1.2, None), *events[4:]]
    assert trace_of(marked).ends.tolist() == trace_of(events).ends.tolist()


def test_a_million_steps_fit_in_flat_columns():
    steps = 1_000_000
    start = RunStart(0, 1, 0.0, None)
    trace = trace_of([start, *(Step(0, i, i + 1.0, None, 8) for i in range(steps))])
    assert trace.samples.sum() == 8 * steps


def _without_start_of_rank_1():
    return [e for e in events_of(TEN_STEPS, ranks=2) if not (isinstance(e, RunStart) and e.rank == 1)]


def _backwards():
    return [
        replace(e, mono=e.mono - 3) if isinstance(e, Step) and e.step == 7 else e
        for e in events_of(TEN_STEPS)
    ]


def _before_the_start():
    return [replace(e, mono=STARTED + 60) if isinstance(e, RunStart) else e for e in events_of(TEN_STEPS)]


def _gap_in_rank_1():
    return [
        e for e in events_of(TEN_STEPS, ranks=2) if not (isinstance(e, Step) and e.rank == 1 and e.step == 4)
    ]


def _at_another_pace(pace):
    return [replace(e, mono=STARTED + (e.mono - STARTED) * pace) for e in events_of(TEN_STEPS)]


def _of_a_replaced_clock():
    *steps, end = events_of(TEN_STEPS)
    return [*steps, replace(end, facts={"clock_drift": 45.0})]


def test_wall_times_in_whole_seconds_are_no_other_pace():
    events = [e if e.wall is None else replace(e, wall=float(int(e.wall))) for e in events_of(TEN_STEPS)]
    assert trace_of(events).step_seconds.tolist() == pytest.approx(TEN_STEPS.tolist())


def test_a_wall_clock_that_is_set_amid_the_steps_changes_nothing():
    events = [
        replace(e, wall=e.wall + 3600) if isinstance(e, Step) and e.step >= 4 else e
        for e in events_of(TEN_STEPS)
    ]
    assert trace_of(events).step_seconds.tolist() == pytest.approx(TEN_STEPS.tolist())


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        (_at_another_pace(1e-6), "4.5e-06 s by their monotonic times"),
        (_at_another_pace(1.6), "one of the two clocks is not the machine's"),
        (_at_another_pace(1 / 1.2), "one of the two clocks is not the machine's"),
        (_of_a_replaced_clock(), "went on by 4.5 s, its machine's went on by 49.5 s"),
        ([], "rank 0 never started"),
        ([next(events_of(TEN_STEPS))], "no step"),
        (_without_start_of_rank_1(), "1 of 2 ranks never started"),
        (_backwards(), "backwards: step 7 of rank 0"),
        (_before_the_start(), "first step ends before the run starts"),
        (_gap_in_rank_1(), "rank 1 reports step 5 where rank 0 reports step 4"),
        ([*events_of(TEN_STEPS), *events_of(TEN_STEPS)], "rank 0 starts twice"),
        (
            [replace(e, mono=None, wall=None) for e in events_of(TEN_STEPS)],
            "neither a monotonic nor a wall time",
        ),
        (
            [replace(e, samples=None) if isinstance(e, Step) else e for e in events_of(TEN_STEPS)],
            "how many samples",
        ),
        (events_of(TEN_STEPS, samples=0), "step 0 trained on no sample"),
        (
            [replace(e, step=0) if isinstance(e, Step) else e for e in events_of(TEN_STEPS)],
            "twice or out of order",
        ),
    ],
)
def test_a_stream_that_cannot_carry_a_figure_is_refused_with_the_reason(events, reason):
    with pytest.raises(TraceError, match=reason):
        trace_of(events)
