"""Where an evaluation ends on a device that works later than the program issues."""

from __future__ import annotations

import json

from trainmark import probe
from trainmark.inside.hooks.recorder import EVENTS_FOLDER, Recorder

BEHIND = 5.0


class Event:
    """An event of a device that is `behind` by some seconds."""

    behind = 0.0

    def record(self):
        self.time = probe.now() + self.behind

    def synchronize(self):
        pass

    def query(self):
        return True

    def elapsed_time(self, later):
        return 1e3 * (later.time - self.time)


def test_an_evaluation_ends_once_the_device_is_through_with_it(tmp_path, monkeypatch):
    monkeypatch.setenv(EVENTS_FOLDER, str(tmp_path))
    recorder = Recorder("pytorch", None)

    def step():
        recorder.step("optimizer", lambda: (probe.EventClock(Event), 0, 1, {}))

    step()
    monkeypatch.setattr(Event, "behind", BEHIND)
    step()
    recorder.evaluates("model")
    recorder.trains("model")
    for _ in range(2):
        step()
    recorder.close()
    lines = (tmp_path / "observed-pytorch-rank0.jsonl").read_text(encoding="utf-8").splitlines()
    steps = [event for event in map(json.loads, lines) if event["event"] == "step"]
    (paused,) = [step for step in steps if "pauses" in step]
    ((kind, begin, end),) = paused["pauses"]
    assert kind == "evaluation"
    assert BEHIND <= end - begin < BEHIND + 2
    times = [step["mono"] for step in steps]
    assert times == sorted(times)
    place = steps.index(paused)
    assert times[place - 1] <= end <= times[place]
