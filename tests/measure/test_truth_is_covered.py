"""The promise of the product: on streams whose true rate is known, the 95 % interval holds it."""

from __future__ import annotations

import numpy as np
import pytest
from measured_streams import autocorrelated, events_of, trace_from, trials_with

from trainmark.measure.figure import WindowVerdict
from trainmark.measure.result import summarize
from trainmark.measure.steady_window import steady_window
from trainmark.measure.trace import trace_of
from trainmark.measure.trial import WindowRules, measure_trial

SIMULATIONS = 600
STEPS = 100
BATCH = 64
BETWEEN_TRIALS = 0.01
STALL_SHARE, STALL = 0.02, 2.0
TRUE_RATE = BATCH / (1 + STALL_SHARE * (STALL - 1))

# The 97.5 % quantile of Student's t for n − 1 degrees of freedom.
STUDENT = {6: 2.571, 7: 2.447, 8: 2.365}


def _simulated(rng: np.random.Generator, trials: int) -> np.ndarray:
    """Step times of fresh processes: an effect of each, dependent noise, stalls, warm-up of any length."""
    seconds = 1 + autocorrelated(rng, (trials, STEPS), 0.02, 0.5)
    seconds[rng.random((trials, STEPS)) < STALL_SHARE] *= STALL
    seconds *= np.exp(rng.normal(size=(trials, 1)) * BETWEEN_TRIALS)
    at = np.arange(STEPS)
    lasting = rng.uniform(0, 8, size=(trials, 1))
    slow_start = rng.uniform(0.3, 2, size=(trials, 1)) * np.exp(-at / np.maximum(lasting, 1e-3))
    sudden = 0.5 * (at < rng.integers(0, 25, size=(trials, 1)))
    return seconds * (1 + slow_start + sudden)


def _throughput(run: np.ndarray) -> float:
    """That of `measure_trial`, without all that qualifies it."""
    window = steady_window(run)
    return BATCH * window.steps / float(run[window.first : window.stop].sum())


def test_the_interval_holds_the_truth_in_at_least_93_of_100_results(capsys):
    rng = np.random.default_rng(2024)
    covered, student_covered, widths, student_widths = [], [], [], []
    for simulation in range(SIMULATIONS):
        n = 6 + simulation % 3
        (result,) = summarize(trials_with([_throughput(run) for run in _simulated(rng, n)]))
        covered.append(result.interval.low <= TRUE_RATE <= result.interval.high)
        widths.append(result.interval.high - result.interval.low)
        mean, half = np.mean(result.trials), STUDENT[n] * np.std(result.trials, ddof=1) / np.sqrt(n)
        student_covered.append(abs(mean - TRUE_RATE) <= half)
        student_widths.append(2 * half)
    with capsys.disabled():
        print(f"\n{np.mean(covered):.1%} covered, mean width {np.mean(widths) / TRUE_RATE:.2%} of the rate;")
        print(f"Student's t: {np.mean(student_covered):.1%}, {np.mean(student_widths) / TRUE_RATE:.2%}")
    assert np.mean(covered) >= 0.93
    assert np.mean(widths) < 2 * np.mean(student_widths)


def test_the_way_through_events_gives_the_figure_of_the_arrays():
    for run in _simulated(np.random.default_rng(7), 20):
        through_events = measure_trial(trace_of(events_of(run, BATCH)), WindowRules(0))
        directly = measure_trial(trace_from(run, BATCH), WindowRules(0))
        assert through_events.throughput == directly.throughput
        assert through_events.window == directly.window
        assert directly.throughput == pytest.approx(_throughput(run), rel=1e-9)


def test_the_verdict_of_simulated_trials_is_settled():
    runs = _simulated(np.random.default_rng(8), 1000)
    verdicts = [steady_window(run).verdict for run in runs]
    assert np.mean([verdict is WindowVerdict.SETTLED for verdict in verdicts]) >= 0.95
