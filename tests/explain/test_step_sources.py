"""What a trace says of the compiled program that its events ran."""

from __future__ import annotations

import json

from trainmark.explain.chrome_trace import read
from trainmark.explain.profile import SpanSource

SOURCE = {"operator": "jit(step)/dot_general", "flop": 10, "traffic": 20}


def event(category, name, start, **arguments):
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "ts": start,
        "dur": 5,
        "pid": 0,
        "tid": 1,
        "args": arguments,
    }


def test_sources_stay_with_their_spans_when_these_are_ordered(tmp_path):
    path = tmp_path / "trace.json"
    events = [
        event("kernel", "late", 50, device=0, stream=1, operator="copy"),
        event("kernel", "early", 10, device=0, stream=1, **SOURCE),
        event("cpu_op", "thunk", 0, **SOURCE),
    ]
    path.write_text(json.dumps({"traceEvents": events}))
    profile = read(path)
    assert profile.spans.sources == {0: SpanSource(*SOURCE.values()), 1: SpanSource("copy")}
    assert profile.host.sources == {0: SpanSource(*SOURCE.values())}
