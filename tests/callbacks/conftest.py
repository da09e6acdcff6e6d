"""A training as its library would drive it, and what the callback recorded of it."""

import pytest

from trainmark import probe
from trainmark.events import Mark, RunEnd, RunStart, Step
from trainmark.events.stream import read
from trainmark.measure.trace import trace_of


class Record:
    """The events of rank 0."""

    def __init__(self, path):
        self._path = path

    @property
    def events(self):
        return list(read(self._path))

    @property
    def start(self):
        return next(event for event in self.events if isinstance(event, RunStart))

    @property
    def steps(self):
        return [event for event in self.events if isinstance(event, Step)]

    @property
    def samples(self):
        return [step.samples for step in self.steps]

    @property
    def order(self):
        """The kinds of the events, marks with their state and epoch."""
        names = {RunStart: "start", Step: "step", RunEnd: "end"}
        return [
            " ".join(
                map(str, (event.kind, *(event.facts.get(name, "") for name in ("state", "epoch"))))
            ).strip()
            if isinstance(event, Mark)
            else names[type(event)]
            for event in self.events
        ]

    def trace(self):
        return trace_of(self.events)


@pytest.fixture
def record(tmp_path, monkeypatch):
    folder = tmp_path / "events"
    folder.mkdir()
    monkeypatch.setenv(probe.EVENTS_FOLDER, str(folder))
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    return Record(folder / "rank0.jsonl")
