"""The step taken apart by class: exact sums, several streams."""

from __future__ import annotations

import time

import numpy as np
from builders_step import Span, profile_of
from hypothesis import given, settings
from hypothesis import strategies as st

from trainmark.explain.breakdown import Gap, breakdown
from trainmark.explain.kernel_classes import CLASSES
from trainmark.explain.profile import DeviceSpans, HostSpans, Profile, ProfiledStep

SPANS = st.lists(
    st.tuples(st.integers(0, 60), st.integers(0, 25), st.integers(0, 3), st.sampled_from(CLASSES)),
    max_size=14,
)


def by_the_nanosecond(spans, begin, end):
    """Return the set of classes in each nanosecond: slow, and plainly right."""
    sets = []
    for now in range(begin, end):
        sets.append(frozenset(name for start, length, _, name in spans if start <= now < start + length))
    return sets


@given(SPANS, st.lists(st.integers(1, 30), min_size=1, max_size=3), st.integers(0, 20))
@settings(max_examples=100, deadline=None)
def test_classes_alone_overlaps_and_gaps_are_those_of_every_nanosecond(spans, lengths, begin):
    spans.sort()
    ends = (begin + np.cumsum(lengths)).tolist()
    profile = profile_of(
        [Span(name, start, start + length, stream) for start, length, stream, name in spans], ends, begin
    )
    # Spans of one start are ordered by their end.
    classes = [profile.spans.names[name] for name in profile.spans.name.tolist()]
    parts = breakdown(profile, classes)
    sets = by_the_nanosecond(spans, begin, ends[-1])
    assert parts.total == len(sets)
    assert parts.idle == sum(not running for running in sets)
    for part in parts.classes:
        assert part.alone == sum(running == {part.name} for running in sets)
        assert part.busy == sum(part.name in running for running in sets)
    for overlap in parts.overlaps:
        assert overlap.nanoseconds == sum(running == set(overlap.classes) for running in sets)
    alone, overlapped = (sum(values) for values in _sums(parts))
    assert alone + overlapped + parts.idle == parts.total


def _sums(parts):
    return [part.alone for part in parts.classes], [overlap.nanoseconds for overlap in parts.overlaps]


def test_no_gap_crosses_the_end_of_a_step():
    profile = profile_of([Span("a", 10, 20), Span("b", 40, 45)], [30, 50])
    gaps = breakdown(profile, ["copy", "copy"]).gaps
    assert gaps == (Gap(0, 10, 0), Gap(20, 30, 0), Gap(30, 40, 1), Gap(45, 50, 1))


def test_kernels_of_a_class_come_with_their_launches_the_longest_first():
    spans = [Span("short", 0, 1), Span("long", 2, 12), Span("short", 13, 14)]
    (part,) = breakdown(profile_of(spans, [20]), ["elementwise"] * 3).classes
    assert [(kernel.name, kernel.nanoseconds, kernel.launches) for kernel in part.kernels] == [
        ("long", 10, 1),
        ("short", 2, 2),
    ]
    assert part.launches == 3


def test_two_streams_of_one_class_do_not_count_twice():
    spans = [Span("a", 0, 10, stream=7), Span("a", 5, 15, stream=8)]
    (part,) = breakdown(profile_of(spans, [20]), ["copy", "copy"]).classes
    assert (part.alone, part.busy, part.kernels[0].nanoseconds) == (15, 15, 20)


def test_a_profile_without_steps_has_no_parts():
    assert breakdown(profile_of([Span("a", 0, 10)], []), ["copy"]).classes == ()


def test_hundreds_of_thousands_of_spans_take_seconds():
    count = 300_000
    start = np.arange(count, dtype=np.int64) * 10
    nothing = np.zeros(0, np.int64)
    spans = DeviceSpans(
        ("kernel",),
        np.zeros(count, np.int32),
        np.zeros(count, np.int8),
        start,
        start + 1 + start // 10 % 17,
        (start // 10 % 4).astype(np.int32),
        start,
        np.zeros(count, bool),
        np.zeros(count, np.int64),
        np.full(count, -1, np.int32),
    )
    host = HostSpans((), *(nothing,) * 7)
    profile = Profile("cuda", spans, host, (ProfiledStep(0, 0, 10 * count + 20),))
    classes = [CLASSES[index % 9] for index in range(count)]
    begin = time.monotonic()
    parts = breakdown(profile, classes)
    assert time.monotonic() - begin < 10
    alone, overlapped = (sum(values) for values in _sums(parts))
    assert alone + overlapped + parts.idle == parts.total
