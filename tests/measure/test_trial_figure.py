from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from measured_streams import KEY, STARTED, device_sample, events_of, trace_from

from trainmark.events import RunStart
from trainmark.measure.trace import TraceError, trace_of
from trainmark.measure.trial import WindowRules, measure_trial

LEVEL = np.full(40, 0.5)
RULES = WindowRules(warmup_steps=10)


def counting_flops(trace):
    return replace(trace, facts={**trace.facts, "flops_per_sample": 1e9})


def test_throughput_is_samples_over_wall_time_of_the_window():
    figure = measure_trial(trace_of(events_of(LEVEL, samples=64, ranks=2)), RULES)
    assert (figure.throughput, figure.samples, figure.seconds) == pytest.approx((256, 30 * 128, 15))


def test_throughput_is_not_the_mean_of_rates():
    uneven = np.tile([0.1, 1.9], 50)
    assert measure_trial(trace_from(uneven, samples=10), WindowRules(0)).throughput == pytest.approx(10.0)


def test_the_first_step_counts_from_the_start_of_the_run():
    assert measure_trial(trace_from(np.r_[7.0, LEVEL]), RULES).first_step_seconds == pytest.approx(7.0)


def test_a_trial_settles_where_its_level_begins_however_many_steps_are_dropped():
    compiled = np.r_[7.0, 3.0, LEVEL]
    assert measure_trial(trace_from(compiled), RULES).settling_steps == 2
    assert measure_trial(trace_from(compiled), WindowRules(warmup_steps=0)).settling_steps == 2


def test_a_trial_that_drifts_throughout_does_not_settle():
    assert measure_trial(trace_from(np.linspace(0.5, 1.0, 40)), RULES).settling_steps is None


def test_step_times_are_those_inside_the_window():
    times = measure_trial(trace_from(np.r_[7.0, LEVEL, 1.0]), RULES).step_times
    assert (times.p50, times.longest) == pytest.approx((0.5, 1.0))


def test_the_quantiles_of_the_step_times_are_those_of_their_names():
    seconds = np.random.default_rng(3).permutation(np.linspace(1.0, 1.01, 101))
    times = measure_trial(trace_from(seconds), WindowRules(warmup_steps=0)).step_times
    assert (times.p50, times.p90, times.p99) == pytest.approx((1.005, 1.009, 1.0099), abs=1e-9)


def test_a_run_that_is_all_warmup_is_refused():
    with pytest.raises(TraceError, match="40 steps and 50 of them are warm-up"):
        measure_trial(trace_from(LEVEL), WindowRules(warmup_steps=50))


def test_a_clock_too_coarse_to_see_the_window_is_refused():
    with pytest.raises(
        TraceError, match="came at one moment: its clock is too coarse, or the program holds its lines back"
    ):
        measure_trial(trace_from(np.zeros(40)), RULES)


def test_the_share_of_waiting_is_over_the_window():
    figure = measure_trial(trace_of(events_of(LEVEL, data_wait=0.05)), RULES)
    assert figure.data_wait_share == pytest.approx(0.1)


def test_energy_is_power_over_the_window_summed_over_devices():
    trace = trace_of(events_of(LEVEL))
    samples = [
        device_sample(STARTED + second, device, power_watts=watts)
        for second in range(0, 21, 2)
        for device, watts in (("cuda:0", 300.0), ("cuda:1", 100.0))
    ]
    figure = measure_trial(trace, RULES, samples=samples)
    assert figure.joules == pytest.approx(400 * 15)
    assert figure.samples_per_joule == pytest.approx(30 * 64 / 6000)


def test_rising_power_is_integrated_by_trapezoids():
    samples = [device_sample(STARTED + second, power_watts=10.0 * second) for second in (0, 20)]
    inside = [*samples, device_sample(STARTED + 10, power_watts=100.0)]
    assert measure_trial(trace_of(events_of(LEVEL)), RULES, samples=inside).joules == pytest.approx(
        10 * (400 - 25) / 2
    )


def test_energy_is_unknown_where_one_device_does_not_tell_its_power():
    samples = [
        device_sample(STARTED + second, device, power_watts=watts)
        for second in range(20)
        for device, watts in (("cuda:0", 300.0), ("cuda:1", None))
    ]
    figure = measure_trial(trace_of(events_of(LEVEL)), RULES, samples=samples)
    assert (figure.joules, figure.samples_per_joule) == (None, None)


def test_the_power_of_a_host_that_tells_it_is_part_of_the_energy():
    samples = [
        device_sample(STARTED + s, device, power_watts=100.0)
        for s in range(21)
        for device in ("cuda:0", "cpu")
    ]
    assert measure_trial(trace_of(events_of(LEVEL)), RULES, samples=samples).joules == pytest.approx(3000)


def test_a_host_that_does_not_tell_its_power_does_not_hide_the_devices():
    samples = [device_sample(STARTED + s, power_watts=100.0) for s in range(20)]
    samples += [device_sample(STARTED + s, "cpu", utilisation=0.5) for s in range(20)]
    assert measure_trial(trace_of(events_of(LEVEL)), RULES, samples=samples).joules == pytest.approx(1500)


def test_samples_read_by_wall_time_match_a_trace_in_wall_time():
    trace = trace_of(replace(event, mono=None) for event in events_of(LEVEL))
    samples = [device_sample(STARTED + second, power_watts=100.0) for second in range(20)]
    assert measure_trial(trace, RULES, samples=samples).joules == pytest.approx(1500)


def test_utilisation_is_over_the_peak_that_the_ranks_measured():
    figure = measure_trial(counting_flops(trace_of(events_of(LEVEL, ranks=2))), RULES, known_peak_flops=9e12)
    assert (figure.utilisation.value, figure.utilisation.source) == (pytest.approx(256e9 / 2e12), "measured")


def test_utilisation_falls_back_on_the_known_peak_of_all_devices():
    key = replace(KEY, devices_per_node=4)
    figure = measure_trial(counting_flops(trace_from(LEVEL)), RULES, key, known_peak_flops=2e12)
    assert (figure.utilisation.value, figure.utilisation.source) == (pytest.approx(128e9 / 8e12), "known")


def test_the_share_of_the_memory_is_over_the_bandwidth_that_the_ranks_measured():
    facts = {"bytes_per_sample": 2e8}
    ends = ({"peak_bandwidth": 4e11}, {"peak_bandwidth": 6e11})
    trace = replace(trace_from(LEVEL), world_size=2, facts=facts, end_facts=ends)
    figure = measure_trial(trace, RULES)
    assert figure.memory_share == pytest.approx(128 * 2e8 / 1e12)
    assert figure.peak_bandwidth == 1e12
    for unknown in ({"end_facts": ends[:1]}, {"facts": {}}):
        assert measure_trial(replace(trace, **unknown), RULES).memory_share is None


def test_utilisation_is_unknown_without_any_peak():
    assert measure_trial(counting_flops(trace_from(LEVEL)), RULES).utilisation is None


def test_first_and_last_loss_are_kept():
    falling = (replace(e, loss=5.0 - e.step / 10) if hasattr(e, "loss") else e for e in events_of(LEVEL))
    figure = measure_trial(trace_of(falling), RULES)
    assert (figure.loss_first, figure.loss_last) == pytest.approx((5.0, 1.1))


def test_the_figure_counts_all_ranks_of_the_run():
    events = [replace(e, unit="tokens") if isinstance(e, RunStart) else e for e in events_of(LEVEL, ranks=3)]
    figure = measure_trial(trace_of(events), RULES)
    assert (figure.world_size, figure.unit) == (3, "tokens")


def test_memory_is_what_the_program_says_and_else_what_the_samples_show():
    samples = [
        device_sample(STARTED + 1, "n1/cuda:0", own_memory_bytes=5 << 30),
        device_sample(STARTED + 2, "n1/cuda:1", own_memory_bytes=6 << 30),
        device_sample(STARTED + 1, "n1/cpu", own_memory_bytes=7 << 30),
        device_sample(STARTED + 1, "n2/cpu", own_memory_bytes=8 << 30),
    ]
    silent = trace_from(np.full(50, 0.5))
    figure = measure_trial(silent, WindowRules(warmup_steps=10), samples=samples)
    assert (figure.memory_bytes, figure.host_memory_bytes) == (6 << 30, 8 << 30)
    speaking = measure_trial(replace(silent, memory=1 << 30), WindowRules(warmup_steps=10), samples=samples)
    assert (speaking.memory_bytes, speaking.host_memory_bytes) == (1 << 30, 8 << 30)


def test_memory_that_nothing_tells_is_none():
    idle = [device_sample(STARTED + 1, own_memory_bytes=0), device_sample(STARTED + 1, "cpu")]
    figure = measure_trial(trace_from(np.full(50, 0.5)), WindowRules(warmup_steps=10), samples=idle)
    assert (figure.memory_bytes, figure.host_memory_bytes) == (None, None)
