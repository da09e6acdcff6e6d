"""Spans to draw."""

from __future__ import annotations

from builders_step import Span, profile_of

from trainmark.explain.perfetto import timeline


def test_the_longest_spans_are_drawn_in_order_and_the_others_counted():
    spans = [Span("long", 105, 120, stream=7), Span("tiny", 121, 122), Span("longer", 125, 150, stream=8)]
    drawn = timeline(profile_of(spans, [130, 160], 100), ["copy"] * 3, most=2)
    assert [(span.lane, span.name, span.start, span.end) for span in drawn.spans] == [
        ("stream 7", "long", 5, 20),
        ("stream 8", "longer", 25, 50),
    ]
    assert drawn.steps == ((0, 30), (30, 60))
    assert drawn.thinned == 1


def test_what_reaches_beyond_the_steps_is_cut_and_what_lies_outside_left_out():
    spans = [Span("before", 0, 50), Span("into", 90, 110), Span("after", 170, 180)]
    drawn = timeline(profile_of(spans, [160], 100), ["copy"] * 3)
    assert [(span.name, span.start, span.end) for span in drawn.spans] == [("into", 0, 10)]
    assert drawn.thinned == 0
