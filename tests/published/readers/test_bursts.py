"""Lines that come in bursts, because the program holds them back or the agent could not read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from trainmark.logs.trials.output import Output, ReaderError
from trainmark.logs.trials.pattern import events
from trainmark.measure.doubts import DoubtCode
from trainmark.measure.trace import trace_of
from trainmark.measure.trial import WindowRules, measure_trial

STEP = 0.004


def printed(count: int, step: float = STEP) -> np.ndarray:
    return 1000 + step * np.arange(count)


def read_at(lines: np.ndarray, reads: np.ndarray) -> np.ndarray:
    """When each line came to whoever reads at these times, and once more at the end."""
    reads = np.sort(np.append(reads, lines[-1] + 0.3))
    return reads[np.searchsorted(reads, lines)]


def figure_of(*ranks: np.ndarray):
    output = Output(Path(), len(ranks), batch_per_device=None)
    stamps = [[(float(at), {}) for at in arrivals] for arrivals in ranks]
    return measure_trial(trace_of(events(stamps, output, "lines")), WindowRules(warmup_steps=10))


def codes(figure) -> set[DoubtCode]:
    return {each.code for each in figure.doubts}


@pytest.mark.parametrize("bursts", [4, 10, 30])
@pytest.mark.parametrize("lines", [20, 60, 100])
def test_lines_that_are_flushed_in_blocks_give_the_rate_of_their_steps_and_a_doubt(lines, bursts):
    # A block is written as its last line fills it, and what is left when the program has ended.
    ends = printed(lines * bursts + 7, 0.4 / lines)
    figure = figure_of(read_at(ends, ends[lines - 1 :: lines]))
    assert figure.throughput == pytest.approx(lines / 0.4, rel=1e-6)
    (doubt,) = (each for each in figure.doubts if each.code is DoubtCode.LINES_IN_BURSTS)
    assert f"{len(ends)} lines of steps came in {bursts + 1} bursts" in doubt.message


def test_bursts_of_unequal_length_give_the_rate_too():
    ends = printed(1000)
    reads = 1000 + np.cumsum(np.random.default_rng(1).uniform(0.08, 0.4, 20))
    assert figure_of(read_at(ends, reads)).throughput == pytest.approx(1 / STEP, rel=0.02)


@pytest.mark.parametrize("starved", [slice(0, 125), slice(150, 250), slice(175, 295)])
def test_one_time_in_which_nobody_read_changes_no_figure_wherever_it_is(starved):
    ends = printed(300)
    figure = figure_of(read_at(ends, np.delete(ends, starved)))
    assert figure.throughput == pytest.approx(1 / STEP, rel=1e-6)
    assert DoubtCode.LINES_IN_BURSTS not in codes(figure)


def test_a_relay_that_passes_a_burst_on_line_by_line_makes_no_difference():
    ends = printed(1000)
    arrivals = read_at(ends, ends[99::100]) + np.tile(np.arange(100) * 5e-5, 10)
    figure = figure_of(arrivals)
    assert figure.throughput == pytest.approx(1 / STEP, rel=1e-3)
    assert DoubtCode.LINES_IN_BURSTS in codes(figure)


def test_ranks_whose_bursts_differ_still_step_together():
    ends = printed(1000)
    figure = figure_of(read_at(ends, ends[99::100]), read_at(ends, ends[59::60]))
    assert figure.throughput == pytest.approx(2 / STEP, rel=1e-6)
    assert DoubtCode.LINES_IN_BURSTS in codes(figure)


@pytest.mark.parametrize("step", [STEP, 1e-5])
def test_lines_that_come_one_by_one_keep_their_times(step):
    arrivals = printed(300, step) + step * np.random.default_rng(1).uniform(0, 0.5, 300)
    steps = list(events([[(at, {}) for at in arrivals.tolist()]], Output(Path(), 1, None), "lines"))
    assert [event.mono for event in steps[:-1]] == arrivals.tolist()
    assert set(steps[0].facts) == {"source"}


def test_a_long_evaluation_between_steps_is_no_burst():
    arrivals = printed(300) + np.repeat([0.0, 60.0, 120.0], 100)
    assert DoubtCode.LINES_IN_BURSTS not in codes(figure_of(arrivals))
    assert DoubtCode.LONG_STEPS in codes(figure_of(arrivals))


@pytest.mark.parametrize(("lines", "reads"), [(2, []), (300, []), (300, [1000.9])])
def test_too_few_bursts_to_be_timed_are_refused_with_what_helps(lines, reads):
    with pytest.raises(ReaderError, match=rf"the {lines} lines .* bursts \({len(reads) + 1}\).*python -u"):
        figure_of(read_at(printed(lines), np.array(reads)))
