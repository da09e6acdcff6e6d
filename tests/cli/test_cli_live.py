"""What a training shows while it runs, from a stream that grows."""

from __future__ import annotations

import queue
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from trainmark.cli import progress
from trainmark.cli.progress import Progress, TrialProgress, course
from trainmark.events import Mark, Step, stream
from trainmark.runner.progress import Follower

sys.path.append(str(Path(__file__).resolve().parents[1] / "measure"))

from finish_streams import killed, training


@pytest.fixture
def follower(tmp_path):
    return Follower(tmp_path / "rank0.jsonl", world_size=2)


def grow(follower, tmp_path, events):
    with (tmp_path / "rank0.jsonl").open("a") as file:
        file.writelines(stream.encode(event) + "\n" for event in events)
    follower.look()


def upto(events, kind, epoch, state):
    """The events up to one mark, that one included."""
    wanted = {"epoch": epoch, "state": state}
    marks = (event for event in events if isinstance(event, Mark) and event.kind == kind)
    last = next(mark for mark in marks if wanted.items() <= mark.facts.items())
    return events[: events.index(last) + 1]


def test_a_throughput_trial_shows_no_epochs(follower, tmp_path):
    grow(follower, tmp_path, [event for event in training()[1:] if isinstance(event, Step)])
    assert follower.training is None
    assert follower.rate == pytest.approx(2 * 32 / 0.5)


def test_the_line_has_epoch_step_loss_and_last_accuracy(follower, tmp_path):
    events = training(target=None)
    steps = [event for event in events if isinstance(event, Step)]
    grow(follower, tmp_path, events[: events.index(steps[24]) + 1])
    assert course(follower.steps, follower.training) == [
        "epoch 3/3",
        "step 25/30",
        "loss 2.059",
        "top-1 40.00 %",
    ]


def test_the_rate_is_that_of_training_also_after_an_evaluation(follower, tmp_path):
    events = training(target=None)
    steps = [event for event in events if isinstance(event, Step)]
    grow(follower, tmp_path, events[: events.index(steps[12]) + 1])
    assert follower.rate == pytest.approx(2 * 32 / 0.5)


def test_while_it_evaluates_it_says_so(follower, tmp_path):
    grow(follower, tmp_path, upto(training(), "eval", 0, "begin"))
    assert "evaluating" in course(follower.steps, follower.training)


def test_the_time_left_counts_the_steps_and_the_evaluations_still_to_come(follower, tmp_path):
    grow(follower, tmp_path, upto(training(target=None), "eval", 1, "end"))
    # One epoch of ten steps of 0.5 s, and an evaluation of 3 s.
    assert follower.training.left == pytest.approx(5 + 3)


def test_each_epoch_is_told_once_and_in_order(follower, tmp_path, capsys):
    lines = TrialProgress(moving=False)
    lines.trial_began(None, 1, 2, None)
    events = training(target=None)
    for event in events:
        grow(follower, tmp_path, [event])
        lines.progress(follower.steps, follower.rate, follower.training)
    stderr_lines = capsys.readouterr().err.splitlines()
    assert stderr_lines[1] == (
        "[  1/2] epoch 2/3  step 20  loss 2.414  top-1 40.00 %  top-5 70.00 %  128.0/s  0:21 elapsed"
        "  at most 0:08 left"
    )
    assert len(stderr_lines) == 3


def test_an_epoch_that_is_not_evaluated_is_told_when_the_next_begins(follower, tmp_path, capsys):
    lines = TrialProgress(moving=False)
    lines.trial_began(None, 1, 1, None)
    events = [event for event in training(target=None) if getattr(event, "kind", "") != "eval"]
    grow(follower, tmp_path, events)
    lines.progress(follower.steps, follower.rate, follower.training)
    stderr_lines = capsys.readouterr().err.splitlines()
    assert [re.search(r"epoch (\d)", line)[1] for line in stderr_lines] == ["1", "2", "3"]
    assert "top-1" not in stderr_lines[0]


def test_a_resumed_training_goes_on_counting_where_it_was_taken_up(follower, tmp_path):
    events = killed(stop=17, resumed=12)
    start = next(place for place, event in enumerate(events) if place and hasattr(event, "world_size"))
    grow(follower, tmp_path, events[: start + 1])
    assert follower.steps == 12


def test_the_moving_line_shows_a_training(follower, tmp_path):
    trial = SimpleNamespace(
        id="pytorch/01", case=SimpleNamespace(workload="resnet50", rules=SimpleNamespace(steps=1))
    )
    with TrialProgress(moving=True) as moving:
        moving.trial_began(trial, 1, 1, None)
        grow(follower, tmp_path, upto(training(target=None), "epoch", 2, "begin"))
        moving.progress(follower.steps, follower.rate, follower.training)
        shown = moving._bar.tasks[0].description
    assert "epoch 3/3  step 20/30" in shown
    assert "at most 0:08 left" in shown


def test_in_a_pipe_a_silent_trial_gives_a_sign_of_life(monkeypatch):
    monkeypatch.setattr(progress, "SILENCE_SECONDS", 0.02)
    written = queue.Queue()

    class Heard(TrialProgress):
        def note(self, text):
            super().note(text)
            written.put(text)

    workload, rules = SimpleNamespace(untouched=True), SimpleNamespace(steps=120)
    trial = SimpleNamespace(id="train-1n1g/02", case=SimpleNamespace(workload=workload, rules=rules))
    with Heard() as display:
        display.trial_began(trial, 2, 6, 300.0)
        display.progress(1400, 12.5)
        notes = []
        while not any("step" in text for text in notes):
            notes.append(written.get(timeout=60))
    line = notes[-1]
    # A sign of life may come before the trial does.
    assert "about 5:00 for 5 more trials" in notes
    assert re.fullmatch(
        r"… \[2/6\] train-1n1g/02  step 1,400  12\.5/s now  \d:\d\d left  0:\d\d since the start", line
    )


def test_in_a_pipe_a_count_becomes_a_line_now_and_then_with_the_time_left(monkeypatch, capsys):
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
    clock = iter(range(100))
    monkeypatch.setattr(progress.time, "monotonic", lambda: float(next(clock)))
    display = Progress("making x", moving=False)
    display.progress(0, 60)
    display.progress(20, 60)
    assert re.fullmatch(r"making x 20 of 60  \d+/s  0:\d\d left", capsys.readouterr().err.splitlines()[-1])


def test_in_a_pipe_what_is_at_hand_is_told_once(capsys):
    display = Progress("jax", moving=False)
    for what in ("numpy", "numpy", "jaxlib"):
        display.progress(1, 3, what)
    assert capsys.readouterr().err.splitlines() == ["jax [1/3] numpy", "jax [1/3] jaxlib"]


def test_in_a_terminal_a_count_has_a_bar_and_its_rate():
    with Progress("making x", moving=True) as display:
        display.progress(1, 3)
        display.progress(2, 3)
        (task,) = display._bar.tasks
    assert (task.description, task.completed, task.total) == ("making x", 2, 3)
    assert task.fields["what"].endswith("/s")
