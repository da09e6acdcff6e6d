"""What follows from the steps and the loaders' batches that hooks saw."""

from __future__ import annotations

from dataclasses import replace

from trainmark.events import Step
from trainmark.logs.trials.observed import evaluating_share, pause_marks
from trainmark.logs.trials.observed_steps import (
    LoaderRead,
    ObservedPause,
    ObservedStep,
    first_fed,
    samples_of,
    training_feeds,
)


def observed(*loads_by_step: list[tuple[int, int, int | None]]) -> list[ObservedStep]:
    """Steps a second apart; each loader's batches, with their samples, come in the half second before."""
    return [
        ObservedStep(
            Step(0, number, number + 1.0, number + 101.0, None),
            tuple(
                LoaderRead(
                    loader, batches, samples, 0.01, number + 0.5 + loader / 10, number + 0.55 + loader / 10
                )
                for loader, batches, samples in loads
            ),
        )
        for number, loads in enumerate(loads_by_step)
    ]


def test_one_loader_tells_the_samples_of_each_step():
    assert samples_of(observed([(0, 1, 8)], [(0, 2, 16)], [(0, 1, 3)])) == [8, 16, 3]


def test_a_loader_that_comes_between_two_steps_only_evaluates():
    steps = observed([(0, 1, 8)], [(0, 1, 8)], [(0, 1, 8), (1, 10, 80)], [(0, 1, 8)])
    assert training_feeds(steps) == {(0, None)}
    assert samples_of(steps) == [8, 8, 8, 8]


def test_loaders_made_anew_for_every_epoch_all_train():
    steps = observed([(0, 1, 8)], [(0, 1, 8)], [(1, 1, 8)], [(1, 1, 8)])
    assert training_feeds(steps) == {(0, None), (1, None)}
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
    marks = [mark for marks in pause_marks(steps, training_feeds(steps)) for mark in marks]
    assert [(mark.facts["state"], round(mark.mono, 2)) for mark in marks] == [("begin", 2.0), ("end", 2.6)]
    assert all(round(mark.wall - mark.mono, 6) == 100 for mark in marks)


def fed(*rows: tuple, pauses=()) -> ObservedStep:
    """A step; of each row the loader, its pass, the batches of 8 samples and what became of them."""
    loads = [LoaderRead(loader, n, 8 * n, 0.01, 0, 0, each, use) for loader, each, n, use in rows]
    return ObservedStep(Step(0, 0, 0.0, 0.0, None), tuple(loads), pauses=pauses)


def in_order(*steps: ObservedStep) -> list[ObservedStep]:
    """Steps a second apart; their batches come one loader after another in the half second before."""
    return [
        replace(
            step,
            event=Step(0, number, number + 1.0, number + 101.0, None),
            loads=tuple(
                replace(load, asked=number + 0.5 + place / 10, came=number + 0.55 + place / 10)
                for place, load in enumerate(step.loads)
            ),
        )
        for number, step in enumerate(steps)
    ]


TRAIN = (0, 0, 1, "trained")


def test_an_evaluation_over_the_loader_of_the_training_is_another_pass_and_no_training():
    steps = in_order(fed(TRAIN), fed(TRAIN), fed((0, 1, 5, None), TRAIN), fed(TRAIN))
    assert training_feeds(steps) == {(0, 0)}
    assert samples_of(steps) == [8, 8, 8, 8]
    marks = pause_marks(steps, training_feeds(steps))[2]
    assert [(round(mark.mono, 2), mark.facts["state"]) for mark in marks] == [(2.0, "begin"), (2.6, "end")]


def test_batches_asked_for_without_gradients_and_without_a_backward_pass_are_no_training():
    steps = in_order(fed(TRAIN), fed(TRAIN, (0, 0, 3, "evaluated")), fed(TRAIN), fed(TRAIN))
    assert samples_of(steps) == [8, 8, 8, 8]


def test_epochs_of_one_step_train_where_backward_passes_follow_their_batches():
    rows = [((0, 2 * epoch, 1, "trained"), (1, 2 * epoch + 1, 4, "evaluated")) for epoch in range(4)]
    steps = in_order(*(fed(*each) for each in rows))
    assert training_feeds(steps) == {(0, 0), (0, 2), (0, 4), (0, 6)}
    assert samples_of(steps) == [8] * 4


def test_two_loaders_beside_each_other_are_asked_about_also_where_one_begins_anew_each_step():
    both = [fed((0, 100 + number, 1, None), (1, 0, 1, "trained")) for number in range(4)]
    assert samples_of(in_order(*both)) is None


def test_a_step_across_two_epochs_has_the_batches_of_both():
    steps = in_order(
        fed((0, 0, 2, "trained")),
        fed((0, 0, 1, "trained"), (0, 1, 1, "trained")),
        fed((0, 1, 2, "trained")),
        fed((0, 1, 2, "trained")),
    )
    assert samples_of(steps) == [16] * 4


def test_a_batch_asked_for_ahead_in_an_unfinished_epoch_belongs_to_no_step():
    steps = in_order(fed((0, 0, 1, None), TRAIN), fed(TRAIN), fed(TRAIN), fed(TRAIN))
    assert samples_of(steps) == [8] * 4
    listed = in_order(*[fed((0, 0, 1, None), TRAIN)] * 4)  # two batches a step, drawn before both are used
    assert samples_of(listed) == [16] * 4


def paused(kind: str, begin: float, end: float, step: ObservedStep) -> ObservedStep:
    return replace(step, pauses=(ObservedPause(kind, begin, end),))


def test_a_called_pause_in_the_middle_of_a_step_leaves_what_was_trained_before_it():
    steps = [*in_order(*[fed()] * 6)]
    steps[3] = paused("evaluation", 3.25, 3.75, steps[3])
    (_, end) = pause_marks(steps, frozenset())[3]
    assert (end.mono, end.facts["trained_before"], end.facts["seconds"]) == (3.75, 0.25, 0.5)


def test_what_most_steps_call_is_part_of_the_step():
    steps = [paused("evaluation", n + 0.2, n + 0.4, step) for n, step in enumerate(in_order(*[fed()] * 6))]
    assert not any(pause_marks(steps, frozenset()))
    assert round(evaluating_share(steps), 6) == 0.2
    assert evaluating_share([*in_order(*[fed()] * 6), steps[-1]]) is None
