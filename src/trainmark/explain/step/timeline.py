"""Spans to draw: the longest of all streams, times from the start of the first step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from trainmark.explain.explanation import Timeline, TimelineSpan
from trainmark.explain.profile.model import Profile

MOST_SPANS = 4000


def timeline(profile: Profile, classes: Sequence[str], most: int = MOST_SPANS) -> Timeline:
    """Return at most `most` spans by start; the shortest are left out and counted."""
    if not profile.steps:
        return Timeline()
    begin, end = profile.steps[0].start, profile.steps[-1].end
    spans = profile.spans
    rows = np.flatnonzero((spans.start < end) & (spans.end > begin))
    lasting = (spans.end - spans.start)[rows]
    longest = np.sort(np.argsort(-lasting, kind="stable")[:most])
    lane = "thread" if profile.device == "cpu" else "stream"
    drawn = tuple(
        TimelineSpan(
            f"{lane} {int(spans.stream[row])}",
            spans.names[int(spans.name[row])],
            classes[row],
            max(int(spans.start[row]), begin) - begin,
            min(int(spans.end[row]), end) - begin,
        )
        for row in rows[longest].tolist()
    )
    steps = tuple((step.start - begin, step.end - begin) for step in profile.steps)
    return Timeline(steps, drawn, len(rows) - len(drawn))
