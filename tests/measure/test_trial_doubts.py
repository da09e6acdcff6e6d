from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from measured_streams import KEY, STARTED, device_sample, events_of, trace_from

from trainmark.events import Step
from trainmark.measure.doubts import DoubtCode
from trainmark.measure.result import CaseTrial, summarize
from trainmark.measure.trace import trace_of
from trainmark.measure.trial import WindowRules, measure_trial

LEVEL = np.full(120, 0.5)
INSIDE, OUTSIDE = STARTED + 30, STARTED + 1
RULES = WindowRules(warmup_steps=10)


def _doubts(trace, rules=RULES, **inputs):
    return {doubt.code: doubt.message for doubt in measure_trial(trace, rules, **inputs).doubts}


def _with_losses(losses):
    return trace_of(replace(e, loss=losses[e.step]) if isinstance(e, Step) else e for e in events_of(LEVEL))


def test_a_sound_trial_raises_no_doubt():
    sound = events_of(LEVEL, ranks=2, data_wait=0.001)
    calm = [device_sample(INSIDE, throttle=("idle",)), device_sample(INSIDE, "cpu", foreign_share=0.05)]
    assert _doubts(trace_of(sound), samples=calm, key=replace(KEY, precision="amp", layout="NHWC")) == {}


def test_too_few_steady_steps_are_doubted():
    message = _doubts(trace_from(LEVEL[:15]))[DoubtCode.WINDOW_TOO_SHORT]
    assert message.startswith("Only 5 of 15 steps are steady; 10 are needed.")


def test_warmup_beyond_what_was_allowed_for_is_doubted_with_its_length():
    slow_start = np.r_[np.full(40, 1.5), LEVEL]
    message = _doubts(trace_from(slow_start))[DoubtCode.WARMUP_PAST_WINDOW]
    assert message.endswith("Set warmup.steps to 40 or more.")


def test_of_ones_own_program_the_option_is_named_that_its_user_has():
    trace = trace_from(np.r_[np.full(40, 1.5), LEVEL])
    message = _doubts(replace(trace, facts={**trace.facts, "source": "a hook"}))[DoubtCode.WARMUP_PAST_WINDOW]
    assert message.endswith("Add `--warmup 40`, or a larger number.")


def test_a_run_that_never_settles_is_doubted_as_that_alone():
    assert set(_doubts(trace_from(np.linspace(0.5, 1.0, 200)))) == {DoubtCode.NEVER_SETTLED}


@pytest.mark.parametrize(("wait", "doubted"), [(0.045, False), (0.055, True)])
def test_waiting_for_data_is_doubted_above_ten_percent(wait, doubted):
    assert (DoubtCode.DATA_BOUND in _doubts(trace_of(events_of(LEVEL, data_wait=wait)))) is doubted


@pytest.mark.parametrize(("at", "doubted"), [(INSIDE, True), (OUTSIDE, False)])
def test_clocks_held_down_are_doubted_inside_the_window_only(at, doubted):
    samples = [device_sample(at, throttle=("thermal",)), device_sample(INSIDE + 1)]
    assert (DoubtCode.THROTTLED in _doubts(trace_from(LEVEL), samples=samples)) is doubted


COMMAND = replace(KEY, framework=None, device="NVIDIA H200")


def _clock_doubted(key, facts, *samples):
    trace = replace(trace_from(LEVEL), facts=facts)
    return DoubtCode.HOST_CLOCK in _doubts(trace, key=key, samples=samples)


@pytest.mark.parametrize(
    ("clock", "doubted"), [("host", True), (None, True), ("cuda", False), ("jax", False), ("own", False)]
)
def test_a_command_on_a_gpu_is_doubted_without_a_clock_of_the_device(clock, doubted):
    facts = {} if clock is None else {"clock": clock}
    assert _clock_doubted(COMMAND, facts) is doubted


@pytest.mark.parametrize(("facts", "doubted"), [({}, False), ({"clock": "host"}, True)])
def test_a_workload_of_a_family_is_doubted_only_where_it_says_that_the_host_timed_it(facts, doubted):
    assert _clock_doubted(replace(COMMAND, framework="pytorch"), facts) is doubted


@pytest.mark.parametrize(("own_bytes", "doubted"), [(0, False), (1 << 30, True)])
def test_whether_the_command_used_the_gpu_is_taken_from_the_samples_where_they_tell(own_bytes, doubted):
    sample = device_sample(INSIDE, own_memory_bytes=own_bytes)
    assert _clock_doubted(COMMAND, {}, sample) is doubted


def test_a_command_on_processors_needs_no_other_clock():
    busy_host = device_sample(INSIDE, "cpu", own_memory_bytes=1 << 30)
    assert not _clock_doubted(replace(COMMAND, device="AMD EPYC 7763"), {"clock": "host"}, busy_host)


def test_throttling_names_its_reasons_and_how_often_they_held():
    samples = [device_sample(INSIDE + i, throttle=("sw-power-cap",) if i < 3 else ()) for i in range(10)]
    assert (
        "(sw-power-cap) in 3 of 10 samples"
        in _doubts(trace_from(LEVEL), samples=samples)[DoubtCode.THROTTLED]
    )


def test_another_process_on_the_device_is_doubted():
    samples = [device_sample(INSIDE, foreign_processes=2)]
    assert "cuda:0" in _doubts(trace_from(LEVEL), samples=samples)[DoubtCode.DEVICE_SHARED]


@pytest.mark.parametrize(("share", "doubted"), [(0.08, False), (0.3, True)])
def test_a_busy_host_is_doubted_above_a_tenth(share, doubted):
    samples = [device_sample(INSIDE, "cpu", foreign_share=share)]
    assert (DoubtCode.HOST_BUSY in _doubts(trace_from(LEVEL), samples=samples)) is doubted


def test_one_nan_loss_is_doubted():
    losses = np.linspace(7, 6, 120)
    losses[50] = np.nan
    assert "1 of 120 reports" in _doubts(_with_losses(losses))[DoubtCode.NAN_LOSS]


@pytest.mark.parametrize(("last", "doubted"), [(6.0, False), (7.0, True), (7.5, True)])
def test_a_loss_that_does_not_fall_over_a_hundred_steps_is_doubted(last, doubted):
    assert (DoubtCode.LOSS_NOT_FALLING in _doubts(_with_losses(np.linspace(7, last, 120)))) is doubted


def test_a_short_run_need_not_lower_its_loss():
    assert DoubtCode.LOSS_NOT_FALLING not in _doubts(trace_of(events_of(LEVEL[:60], loss=7.0)))


@pytest.mark.parametrize(
    ("precision", "layout", "device", "doubted"),
    [
        ("amp", "NCHW", "NVIDIA H200", True),
        ("bf16", "NCHW", "NVIDIA H200", True),
        ("amp", "NHWC", "NVIDIA H200", False),
        ("fp32", "NCHW", "NVIDIA H200", False),
        ("bf16", "NCHW", "cpu", False),
    ],
)
def test_reduced_precision_in_nchw_is_doubted_on_cuda(precision, layout, device, doubted):
    key = replace(KEY, precision=precision, layout=layout, device=device)
    assert (DoubtCode.WRONG_LAYOUT in _doubts(trace_from(LEVEL), key=key)) is doubted


def test_what_a_rank_could_not_do_as_it_should_is_doubted_once_for_all_ranks():
    ends = ({"fallbacks": ["no tile fits"]}, {"fallbacks": ["no tile fits", "nor here", "nor there"]}, {})
    message = _doubts(replace(trace_from(LEVEL), end_facts=ends))[DoubtCode.FELL_BACK]
    assert "(no tile fits, and 2 more in the rank's log)" in message
    assert DoubtCode.FELL_BACK not in _doubts(replace(trace_from(LEVEL), end_facts=({"fallbacks": []}, {})))


def test_a_rank_that_holds_the_others_back_is_doubted_by_name_and_cost():
    waits = np.array([0.1, 0.1, 0.0])
    message = _doubts(trace_of(events_of(LEVEL, ranks=3, waits=waits)))[DoubtCode.STRAGGLER]
    assert message.startswith("Rank 2 holds the others back")
    assert "costs 20.0% of the throughput (96 images/s)" in message


def test_where_working_and_waiting_cannot_be_told_apart_a_late_rank_is_doubted_with_that_word():
    message = _doubts(trace_of(events_of(LEVEL, ranks=3, late={1: 0.05})))[DoubtCode.STRAGGLER]
    assert message.startswith("Rank 1 ends its steps later than the others by 10.0% of a step")
    assert "cannot be separated" in message


@pytest.mark.parametrize(("clock", "doubted"), [(1900.0, False), (1500.0, True)])
def test_running_at_the_power_limit_is_doubted_only_where_it_costs_much_clock(clock, doubted):
    sample = device_sample(INSIDE, throttle=("sw-power-cap",), clock_mhz=clock, clock_max_mhz=1980.0)
    assert (DoubtCode.THROTTLED in _doubts(trace_from(LEVEL), samples=[sample])) is doubted


def _slowly_warming_trials(seed, trials=4, steps=400):
    rng = np.random.default_rng(seed)
    for _ in range(trials):
        seconds = 0.1 * (1 + 0.02 * rng.standard_normal(steps))
        seconds[rng.random(steps) < 0.03] *= 3
        yield seconds * (1 + 0.4 * np.exp(-np.arange(steps) / rng.uniform(5, steps / 8)))


@pytest.mark.parametrize("seed", [2, 17, 26, 51, 57, 59])
def test_the_advised_warmup_is_enough_for_every_trial_that_it_was_learnt_from(seed):
    traces = [trace_from(seconds) for seconds in _slowly_warming_trials(seed)]
    (result,) = summarize([CaseTrial(KEY, measure_trial(trace, RULES)) for trace in traces])
    (advice,) = (one for one in result.doubts if one.code is DoubtCode.WARMUP_PAST_WINDOW)
    followed = WindowRules(warmup_steps=int(dict(advice.values)["first"]))
    assert followed.warmup_steps == result.warmup_steps
    assert all(DoubtCode.WARMUP_PAST_WINDOW not in _doubts(trace, followed) for trace in traces)
