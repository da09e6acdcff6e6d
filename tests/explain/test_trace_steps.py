"""Where steps end on the device, and what operators of a CPU did themselves."""

from __future__ import annotations

from builders_trace import annotation, call, kernel, operator, write_trace
from hypothesis import given, settings
from hypothesis import strategies as st

from trainmark.explain import chrome_trace
from trainmark.explain.nesting import self_times
from trainmark.explain.profile import Collector, ProfiledStep


def steps_of(tmp_path, events):
    profile = chrome_trace.read(write_trace(tmp_path / "t.json", events))
    return profile.steps, profile.facts["notes"]


def test_a_step_lasts_from_the_last_kernel_launched_in_the_step_before_to_its_own_last(tmp_path):
    events = []
    for number in range(3):
        at = 100 * number
        events += [annotation(f"trainmark_step#{number}", at, 100), call(at + 10, number + 1)]
        # Far behind the host, and on another thread than the annotation's.
        events += [kernel("k", 250 + 200 * number, 150, correlation=number + 1)]
    steps, notes = steps_of(tmp_path, events)
    assert steps == (ProfiledStep(1, 400_000, 600_000), ProfiledStep(2, 600_000, 800_000))
    assert notes == ()


def test_calls_of_the_autograd_thread_count_for_the_step_in_which_they_were_made(tmp_path):
    events = [annotation("ProfilerStep#5", 0, 10), annotation("ProfilerStep#6", 10, 10)]
    events += [call(1, 1), kernel("forward", 3, 2, correlation=1), call(12, 2, tid=99)]
    events += [kernel("backward", 40, 2, correlation=2)]
    assert steps_of(tmp_path, events)[0] == (ProfiledStep(6, 5_000, 42_000),)


def test_our_annotations_come_before_those_of_torch(tmp_path):
    events = [annotation(f"trainmark_step#{n}", 10 * n, 10) for n in range(2)] + [kernel("k", 12, 3)]
    events += [annotation(f"ProfilerStep#{n}", 2 * n, 2) for n in range(10)]
    assert [step.number for step in steps_of(tmp_path, events)[0]] == [1]


def test_without_correlation_a_kernel_counts_for_the_step_in_which_it_started(tmp_path):
    events = [annotation(f"ProfilerStep#{n}", 10 * n, 10) for n in range(2)]
    events += [kernel("a", 2, 3), kernel("b", 12, 5)]
    assert steps_of(tmp_path, events)[0] == (ProfiledStep(1, 5_000, 17_000),)


def test_a_step_that_launched_nothing_ends_with_the_last_kernel_before_its_end(tmp_path):
    events = [annotation(f"ProfilerStep#{n}", 10 * n, 10) for n in range(3)]
    events += [call(1, 1), kernel("a", 2, 3, correlation=1), call(21, 2), kernel("b", 22, 3, correlation=2)]
    assert steps_of(tmp_path, events)[0] == (ProfiledStep(1, 5_000, 5_000), ProfiledStep(2, 5_000, 25_000))


def test_one_annotation_is_a_step_from_its_start(tmp_path):
    events = [annotation("ProfilerStep#9", 5, 10), call(6, 1), kernel("a", 20, 5, correlation=1)]
    steps, (note,) = steps_of(tmp_path, events)
    assert steps == (ProfiledStep(9, 5_000, 25_000),)
    assert note.startswith("One step annotation")


def test_without_annotations_all_device_records_are_one_step_and_a_note_says_so(tmp_path):
    steps, (note,) = steps_of(tmp_path, [operator("aten::mm", 0, 50), kernel("a", 10, 5), kernel("b", 90, 5)])
    assert steps == (ProfiledStep(0, 10_000, 95_000),)
    assert note.startswith("No step annotations")


def test_on_a_cpu_steps_end_with_their_annotations(tmp_path):
    events = [annotation(f"trainmark_step#{n}", 100 * n, 90) for n in range(3)] + [
        operator("aten::mm", 5, 50)
    ]
    assert steps_of(tmp_path, events)[0] == (
        ProfiledStep(1, 90_000, 190_000),
        ProfiledStep(2, 190_000, 290_000),
    )


def test_an_operator_on_a_cpu_has_the_time_between_those_it_called(tmp_path):
    events = [operator("outer", 0, 100), operator("first", 10, 20), operator("second", 30, 30)]
    events += [operator("innermost", 40, 10), annotation("a name", 0, 200), operator("next", 100, 5)]
    profile = chrome_trace.read(write_trace(tmp_path / "t.json", events))
    spans = profile.spans
    pieces = [(spans.names[spans.name[row]], spans.start[row], spans.end[row]) for row in range(len(spans))]
    assert profile.device == "cpu"
    assert pieces == [
        ("outer", 0, 10_000),
        ("first", 10_000, 30_000),
        ("second", 30_000, 40_000),
        ("innermost", 40_000, 50_000),
        ("second", 50_000, 60_000),
        ("outer", 60_000, 100_000),
        ("next", 100_000, 105_000),
    ]
    assert [profile.host.names[profile.host.name[row]] for row in spans.operator] == [
        name for name, *_ in pieces
    ]


def nested(first, second):
    """Whether one lies within the other, or they do not touch: partial overlap is no call."""
    (start, end), (other_start, other_end) = first, second
    apart = end <= other_start or other_end <= start
    return apart or (start <= other_start and other_end <= end) or (other_start <= start and end <= other_end)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 30), st.integers(0, 1)), max_size=12))
def test_self_times_of_a_thread_cover_its_operators_once(intervals):
    collector = Collector()
    for start, length, thread in intervals:
        collector.host("op", start, start + length, thread)
    spans = self_times(collector.host_spans())
    for thread in (0, 1):
        rows = [row for row in range(len(spans)) if spans.stream[row] == thread]
        moments = [moment for row in rows for moment in range(spans.start[row], spans.end[row])]
        own = [(start, start + length) for start, length, of in intervals if of == thread]
        union = {moment for start, end in own for moment in range(start, end)}
        assert len(moments) == len(set(moments))
        assert set(moments) <= union
        if all(nested(first, second) for first in own for second in own):
            assert set(moments) == union


def test_where_work_goes_on_long_after_it_was_given_steps_end_when_it_arrived(tmp_path):
    given = [annotation(f"trainmark_step#{n}", n, 1) for n in range(3)]
    work = [operator("dot", 100 * n, 90, tid=9) for n in range(3)]
    arrived = [annotation("trainmark_arrived", 95 + 100 * n, 1) for n in range(3)]
    steps, _ = steps_of(tmp_path, [*given, *work, *arrived])
    assert steps == (ProfiledStep(1, 96_000, 196_000), ProfiledStep(2, 196_000, 296_000))
    # One that is missing leaves open which.
    steps, _ = steps_of(tmp_path, [*given, *work, *arrived[:2]])
    assert steps == (ProfiledStep(1, 1_000, 2_000), ProfiledStep(2, 2_000, 3_000))
