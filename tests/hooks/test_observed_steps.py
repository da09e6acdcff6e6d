"""What follows from the steps and the loaders' batches that hooks saw."""

from __future__ import annotations

from trainmark.events import Step
from trainmark.published.readers.trials.observed import (
    Load,
    ObservedStep,
    evaluations,
    first_fed,
    samples_of,
    training_loaders,
)


def observed(*loads_by_step: list[tuple[int, int, int | None]]) -> list[ObservedStep]:
    """Steps a second apart; each loader's batches, with their samples, come in the half second before."""
    return [
        ObservedStep(
            Step(0, number, number + 1.0, number + 101.0, None),
            tuple(
                Load(loader, batches, samples, 0.01, number + 0.5 + loader / 10, number + 0.55 + loader / 10)
                for loader, batches, samples in loads
            ),
        )
        for number, loads in enumerate(loads_by_step)
    ]


def test_one_loader_tells_the_samples_of_each_step():
    assert samples_of(observed([(0, 1, 8)], [(0, 2, 16)], [(0, 1, 3)])) == [8, 16, 3]


def test_a_loader_that_comes_between_two_steps_only_evaluates():
    steps = observed([(0, 1, 8)], [(0, 1, 8)], [(0, 1, 8), (1, 10, 80)], [(0, 1, 8)])
    assert training_loaders(steps) == {0}
    assert samples_of(steps) == [8, 8, 8, 8]


def test_loaders_made_anew_for_every_epoch_all_train():
    steps = observed([(0, 1, 8)], [(0, 1, 8)], [(1, 1, 8)], [(1, 1, 8)])
    assert training_loaders(steps) == {0, 1}
    assert samples_of(steps) == [8, 8, 8, 8]


def test_two_loaders_for_one_step_leave_the_samples_unknown():
    assert samples_of(observed(*[[(0, 1, 8), (1, 1, 8)]] * 4)) is None


def test_batches_that_could_not_be_counted_leave_the_samples_unknown():
    assert samples_of(observed([(0, 2, 16)], [(0, 1, None)], [(0, 1, 8)])) is None


def test_steps_before_the_loader_begins_do_not_count():
    steps = observed([], [], [(0, 1, 8)], [(0, 1, 8)])
    assert first_fed(steps) == 2
    assert samples_of(steps[2:]) == [8, 8]
    assert first_fed(observed([], [])) == 0


def test_no_loader_leaves_the_samples_unknown():
    assert samples_of(observed([], [], [])) is None


def test_a_batch_asked_for_ahead_belongs_to_the_last_step_of_its_epoch():
    steps = observed([(0, 2, 16)], [(0, 1, 8)], [], [(0, 2, 16)], [(0, 1, 8)], [])
    assert samples_of(steps) == [8] * 6


def test_a_pause_ends_when_the_training_asks_for_its_own_batch_again():
    steps = observed([(1, 1, 8)], [(1, 1, 8)], [(0, 4, 32), (1, 1, 8)], [(1, 1, 8)])
    marks = list(evaluations(steps, training_loaders(steps)))
    assert [(mark.facts["state"], round(mark.mono, 2)) for mark in marks] == [("begin", 2.5), ("end", 2.6)]
    assert all(round(mark.wall - mark.mono, 6) == 100 for mark in marks)
