from __future__ import annotations

import json
from dataclasses import replace

import pytest
from finish_streams import STARTED, Training, killed, training

from trainmark.base.typed_json import decode, encode
from trainmark.events import Mark, RunEnd, RunStart, Step
from trainmark.measure import figure_doubts
from trainmark.measure.doubts import DoubtCode
from trainmark.measure.figure import TrialFigure
from trainmark.measure.finish import finish_of
from trainmark.measure.trace import TraceError, trace_of
from trainmark.measure.trial import WindowRules, measure_trial


def finish(events):
    return finish_of(trace_of(events))


def without_end(events):
    return [event for event in events if not isinstance(event, RunEnd)]


# One epoch of ten steps takes 10 s the first time and 5 s then, an evaluation 3 s: 13, 21 and 29 s.
def test_time_to_train_ends_with_the_evaluation_that_crosses_the_target():
    assert finish(training()).time2train == pytest.approx(29)
    assert finish(training(target=0.4)).time2train == pytest.approx(21)


def test_epochs_to_the_target_count_from_one_and_name_the_evaluation_that_crossed_it():
    result = finish(training(target=0.4))
    assert result.epochs_to_target == 2
    assert result.crossing is result.evaluations[1]


def test_a_checkpoint_that_several_ranks_tell_of_counts_once():
    events = training(ranks=2, checkpoint_steps=10)
    doubled = [event for event in events if isinstance(event, Mark) and event.kind == "checkpoint"]
    end = next(index for index, event in enumerate(events) if isinstance(event, RunEnd) and event.rank == 1)
    events[end:end] = [replace(mark, rank=1) for mark in doubled]
    assert (finish(events).checkpoints, finish(events).checkpoint_seconds) == (3, pytest.approx(3))


def test_the_clock_as_ai_rank_counts_starts_with_the_process():
    assert finish(training()).airank_seconds == pytest.approx(29 + 7)


def test_the_clock_starts_with_the_first_rank_and_stops_with_the_last():
    late = finish(training(ranks=2, late=0.25))
    assert late.time2train == pytest.approx(29)
    events = training(ranks=2)
    events = [
        replace(e, mono=e.mono + 0.5, wall=e.wall + 0.5)
        if isinstance(e, Mark) and e.rank == 1 and "top1" in e.facts
        else e
        for e in events
    ]
    assert finish(events).time2train == pytest.approx(29.5)


def test_a_target_that_no_evaluation_reaches_is_not_reached():
    result = finish(training(target=0.9))
    assert (result.reached, result.time2train, result.epochs_to_target) == (False, None, None)
    assert dict(result.best)["top1"] == 0.6


def test_a_target_that_is_met_exactly_is_reached():
    assert finish(training(target=0.6)).reached is True


def test_a_stream_that_is_cut_before_the_target_leaves_it_open():
    cut = without_end(training(target=0.9))
    result = finish(cut)
    assert (result.reached, result.time2train, len(result.evaluations)) == (None, None, 3)


def test_a_stream_that_is_cut_after_the_target_has_reached_it():
    assert finish(without_end(training())).reached is True


def test_a_stream_that_is_cut_within_an_epoch_keeps_the_whole_ones():
    own = Training()
    result = finish([own.start(), *own.events(stop=14)])
    assert (len(result.epochs), len(result.evaluations), result.reached) == (1, 1, None)


def test_epochs_without_a_target_have_a_best_accuracy_and_no_finish_line():
    result = finish(training(target=None))
    assert (result.target, result.reached, dict(result.best)["top1"], result.best_epoch) == (
        None,
        None,
        0.6,
        3,
    )


def test_the_best_accuracy_need_not_be_the_last():
    result = finish(training(top1=(0.3, 0.7, 0.5), target=None))
    assert (dict(result.best), result.best_epoch) == ({"top1": 0.7, "top5": 1.0}, 2)


def test_training_alone_is_timed_between_the_marks_of_the_epochs_and_the_first_apart():
    result = finish(training(checkpoint_steps=5))
    assert result.train_rate == pytest.approx(320 / 5)
    assert result.first_epoch_rate == pytest.approx(320 / 10)


def test_throughput_with_evaluation_is_all_images_over_all_the_time():
    assert finish(training()).whole_rate == pytest.approx(960 / 29)


def test_the_rate_of_ai_rank_leaves_the_first_epoch_out_and_no_evaluation():
    assert finish(training()).airank_rate == pytest.approx(640 / 19)


def test_evaluations_and_checkpoints_are_timed_apart():
    result = finish(training(checkpoint_steps=10))
    assert result.evaluation_seconds == pytest.approx(9)
    assert (result.checkpoints, result.checkpoint_seconds) == (3, pytest.approx(3))


def test_ranks_count_images_together_and_evaluations_once():
    result = finish(training(ranks=4))
    assert [epoch.samples for epoch in result.epochs] == [1280] * 3
    assert len(result.evaluations) == 3


def test_a_throughput_trial_has_no_finish():
    events = training(target=None)
    events[0] = replace(events[0], facts={})
    assert finish(events) is None


def test_the_clock_of_a_resumed_trial_never_pauses():
    result = finish(killed(stop=17, resumed=12, down=60))
    # Seven steps of the second epoch were trained, two of them count; 60 s nothing happened.
    assert result.time2train == pytest.approx(29 + 5 * 0.5 + 60)
    assert (result.resumed, result.lost_seconds) == (1, pytest.approx(62.5))


def test_what_a_resumption_made_void_is_not_counted_as_trained():
    result = finish(killed(stop=27, resumed=12))
    assert [epoch.samples for epoch in result.epochs] == [320] * 3
    assert result.train_rate == pytest.approx(64)
    assert [evaluation.epoch for evaluation in result.evaluations] == [0, 1, 2]


def test_an_accuracy_that_a_resumption_made_void_does_not_cross_the_target():
    own = Training(top1=(0.2, 0.6, 0.3), target=0.5)
    events = [own.start(), *without_end(own.events())]
    own.now += 60
    own.top1 = (0.2, 0.3, 0.3)
    result = finish([*events, own.start(resumed_step=12), *own.events(first=12, stop=14)])
    assert (result.reached, [evaluation.epoch for evaluation in result.evaluations]) == (None, [0])


def test_an_evaluation_that_is_repeated_counts_as_it_was_the_last_time():
    again = finish(killed(stop=27, resumed=12))
    assert again.evaluations[1].end > 60


def test_ranks_that_lost_their_last_steps_in_a_kill_are_joined_where_all_know_them():
    events = killed(stop=17, resumed=15, ranks=2)
    events = [e for e in events if not (isinstance(e, Step) and e.rank == 1 and e.step == 14)]
    trace = trace_of(events)
    assert 14 not in trace.numbers
    assert (len(trace.ends), trace.numbers[-1]) == (29, 29)


def test_a_resumption_after_a_boot_is_brought_onto_the_first_clock():
    here = finish(killed(stop=17, resumed=12))
    assert finish(killed(stop=17, resumed=12, boot=-900.0)) == here


def test_a_resumed_trial_says_what_the_kill_cost():
    figure = measure_trial(trace_of(killed(stop=17, resumed=12)), WindowRules(2))
    (doubt,) = [doubt for doubt in figure.doubts if doubt.code is DoubtCode.RESUMED]
    assert "resumed once" in doubt.message
    assert "62 s" in doubt.message


def test_a_resumed_trial_names_the_damaged_checkpoints_that_were_passed_over():
    skipped = [{"name": "step-00000015", "reason": "rank0.npz is cut short"}]
    events = [
        replace(event, facts={**event.facts, "checkpoints_skipped": skipped})
        if isinstance(event, RunStart) and "resumed_step" in event.facts
        else event
        for event in killed(stop=17, resumed=12)
    ]
    figure = measure_trial(trace_of(events), WindowRules(2))
    (doubt,) = [doubt for doubt in figure.doubts if doubt.code is DoubtCode.RESUMED]
    assert "past damaged checkpoints (step-00000015: rank0.npz is cut short)" in doubt.message


def test_a_pause_is_not_the_time_of_the_step_after_it():
    trace = trace_of(training(checkpoint_steps=3))
    assert trace.step_seconds[:10] == pytest.approx([1.0] * 10)
    assert trace.step_seconds[10:] == pytest.approx([0.5] * 20)
    assert trace.rank_seconds[0] == pytest.approx(trace.step_seconds)


def test_a_checkpoint_of_rank_0_is_nobodys_step():
    trace = trace_of(training(ranks=2, checkpoint_steps=3))
    assert trace.rank_seconds[1, 10:] == pytest.approx([0.5] * 20)


def test_throughput_is_that_of_the_training_between_the_pauses():
    figure = measure_trial(trace_of(training(steps_per_epoch=40, checkpoint_steps=25)), WindowRules(40))
    assert figure.throughput == pytest.approx(64)
    assert figure.finish.reached is True


def test_marks_of_a_program_without_states_change_no_step():
    plain = training(target=None)
    bare = [replace(e, facts={}) if isinstance(e, Mark) else e for e in plain]
    none = [e for e in plain if not isinstance(e, Mark)]
    assert trace_of(bare).step_seconds.tolist() == trace_of(none).step_seconds.tolist()


def test_a_finish_survives_json():
    figure = measure_trial(trace_of(killed(stop=17, resumed=12, checkpoint_steps=6)), WindowRules(2))
    assert decode(TrialFigure, json.loads(json.dumps(encode(figure)))) == figure


def test_a_figure_of_an_earlier_version_has_no_finish():
    plain = encode(measure_trial(trace_of(training()), WindowRules(2)))
    del plain["finish"]
    assert decode(TrialFigure, plain).finish is None


@pytest.mark.parametrize("lead", [0, 1])
def test_the_first_epoch_begins_when_its_mark_says_so(lead):
    own = Training()
    events = [own.start()]
    own.now += 5 * lead
    trace = trace_of([*events, *own.events()])
    assert (trace.start, trace.begins[0]) == (STARTED, STARTED + 5 * lead)


def test_a_training_that_left_its_recipe_is_doubted_with_what_it_did_otherwise():
    facts = {"recipe": "ai-rank", "departures": ["20 epochs, not 120", "batch 64 a device, not 256"]}
    (doubt,) = figure_doubts.recipe_doubts(facts)
    assert doubt.code is DoubtCode.RECIPE_CHANGED
    assert "ai-rank was changed (20 epochs, not 120; batch 64 a device, not 256)" in doubt.message
    assert list(figure_doubts.recipe_doubts({"recipe": "ai-rank", "departures": []})) == []


def test_a_device_clock_ahead_of_the_hosts_does_not_count_an_epoch_twice():
    events = [
        replace(event, mono=event.mono + 1e-4, wall=event.wall + 1e-4) if isinstance(event, Step) else event
        for event in training()
    ]
    ahead, plain = (finish_of(trace_of(each)) for each in (events, training()))
    assert [epoch.seconds for epoch in ahead.epochs] == pytest.approx(
        [epoch.seconds for epoch in plain.epochs], abs=1e-3
    )


@pytest.mark.parametrize("share", [-0.1, 101.0])
def test_an_accuracy_that_cannot_be_makes_the_trial_invalid(share):
    with pytest.raises(TraceError, match="an evaluation cannot have top1"):
        trace_of(training(top1=(0.2, share), target=None))


def test_a_metric_that_diverged_is_none_and_not_the_best():
    result = finish(training(top1=(0.2, 1e31), target=None))
    assert dict(result.best)["top1"] == 0.2 and result.best_epoch == 1
