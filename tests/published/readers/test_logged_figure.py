"""The figure of a foreign log, on logs simulated so that the true rate is known."""

from __future__ import annotations

import numpy as np
import pytest

from trainmark.events import Scope
from trainmark.measure.doubts import DoubtCode
from trainmark.measure.log_figure import Basis, CopiedLogs, LogFacts, find_copies, logged_figure, times_digest

STEPS = 400
BATCH = 128
WORLD = 8
SECONDS = 0.25


@pytest.fixture
def step_seconds() -> np.ndarray:
    """A settled run: 20 slow steps, then steps around a quarter of a second."""
    random = np.random.default_rng(7)
    seconds = SECONDS * (1 + 0.02 * random.standard_normal(STEPS))
    seconds[:20] *= 4
    return seconds


@pytest.fixture
def true_rate(step_seconds) -> float:
    return BATCH * WORLD * (STEPS - 20) / step_seconds[20:].sum()


def facts(**changed) -> LogFacts:
    known = {"unit": "images", "scope": Scope.GLOBAL, "world_size": WORLD, "batch_per_device": BATCH}
    return LogFacts(**{**known, **changed})


def codes(figure) -> set[DoubtCode]:
    return {doubt.code for doubt in figure.doubts}


def close_to(rate: float, tolerance: float = 0.002):
    return pytest.approx(rate, rel=tolerance)


def test_fine_timestamps_and_a_known_batch_give_samples_over_time(step_seconds, true_rate):
    columns = {"step": np.arange(1.0, STEPS + 1), "wall": 1.6e9 + np.cumsum(step_seconds)}
    figure = logged_figure(columns, facts())
    assert figure.basis is Basis.TIMESTAMPS
    assert figure.throughput == close_to(true_rate)
    assert figure.interval.low < true_rate < figure.interval.high
    assert figure.steps == STEPS
    assert not codes(figure)


def test_timestamps_are_preferred_to_the_printed_rates(step_seconds, true_rate):
    columns = {
        "step": np.arange(1.0, STEPS + 1),
        "wall": 1.6e9 + np.cumsum(step_seconds),
        "rate": np.full(STEPS, 1.0),
    }
    assert logged_figure(columns, facts()).throughput == close_to(true_rate)


def test_timestamps_to_the_second_give_way_to_the_printed_rates(step_seconds, true_rate):
    columns = {
        "step": np.arange(1.0, STEPS + 1),
        "wall": np.floor(1.6e9 + np.cumsum(step_seconds)),
        "rate": BATCH * WORLD / step_seconds,
    }
    figure = logged_figure(columns, facts())
    assert figure.basis is Basis.RATES
    assert figure.throughput == close_to(true_rate)


def test_rates_are_joined_by_their_times_and_never_averaged():
    seconds = np.tile([0.1, 0.4], 200)
    columns = {"step": np.arange(1.0, 401), "rate": BATCH / seconds}
    figure = logged_figure(columns, facts(world_size=1))
    assert figure.throughput == close_to(BATCH / 0.25)
    assert abs((BATCH / seconds).mean() / figure.throughput - 1) > 0.5


def test_a_rate_since_the_last_line_counts_for_the_steps_between(step_seconds, true_rate):
    every = 20
    blocks = step_seconds.reshape(-1, every).sum(axis=1)
    columns = {"step": np.arange(every, STEPS + 1.0, every), "rate": BATCH * WORLD * every / blocks}
    figure = logged_figure(columns, facts(batch_per_device=None))
    assert figure.throughput == close_to(true_rate, 0.005)
    assert figure.steps == STEPS


def test_lines_of_unequal_reach_are_weighed_by_their_steps():
    columns = {"step": np.cumsum(np.tile([1.0, 9.0], 100)), "rate": np.tile([100.0, 200.0], 100)}
    assert logged_figure(columns, facts()).throughput == close_to(1000 / (100 / 100 + 900 / 200))


def test_one_devices_rates_are_multiplied_by_the_devices(step_seconds, true_rate):
    columns = {"step": np.arange(1.0, STEPS + 1), "rate": BATCH / step_seconds}
    assert logged_figure(columns, facts(scope=Scope.RANK)).throughput == close_to(true_rate)


def test_one_devices_rates_among_unknown_many_give_no_figure_and_the_doubt(step_seconds):
    columns = {"step": np.arange(1.0, STEPS + 1), "rate": BATCH / step_seconds}
    figure = logged_figure(columns, facts(scope=Scope.RANK, world_size=None))
    assert figure.throughput is None and figure.interval is None
    assert codes(figure) == {DoubtCode.SCOPE_AMBIGUOUS}


@pytest.mark.parametrize("first_step", [0, 1])
def test_running_means_are_taken_apart(step_seconds, true_rate, first_step):
    done = np.arange(1.0, STEPS + 1)
    columns = {
        "step": done - 1 + first_step,
        "rate": np.round(BATCH * done / np.cumsum(step_seconds), 5),
    }
    figure = logged_figure(columns, facts(scope=Scope.RANK, cumulative=True, batch_per_device=None))
    assert figure.basis is Basis.RUNNING_MEANS
    assert figure.throughput == close_to(true_rate)


def test_running_means_rounded_hard_still_give_the_rate(step_seconds, true_rate):
    done = np.arange(1.0, STEPS + 1)
    columns = {"step": done, "rate": np.round(BATCH * WORLD * done / np.cumsum(step_seconds), 1)}
    assert logged_figure(columns, facts(cumulative=True)).throughput == close_to(true_rate, 0.01)


def test_running_means_that_begin_again_with_the_epoch_are_taken_apart_within_it(step_seconds, true_rate):
    halves = step_seconds.reshape(2, -1)
    done = np.tile(np.arange(1.0, STEPS / 2 + 1), 2)
    columns = {
        "epoch": np.repeat([0.0, 1.0], STEPS // 2),
        "step": done,
        "rate": BATCH * WORLD * done / np.cumsum(halves, axis=1).ravel(),
    }
    assert logged_figure(columns, facts(cumulative=True)).throughput == close_to(true_rate)


@pytest.mark.parametrize(("name", "scale"), [("seconds", 1), ("ms", 1000)])
def test_printed_step_times_need_only_the_batch(step_seconds, true_rate, name, scale):
    columns = {"step": np.arange(1.0, STEPS + 1), name: step_seconds * scale}
    figure = logged_figure(columns, facts())
    assert figure.basis is Basis.STEP_TIMES
    assert figure.throughput == close_to(true_rate)


def test_step_times_without_a_batch_give_no_figure(step_seconds):
    columns = {"step": np.arange(1.0, STEPS + 1), "seconds": step_seconds}
    figure = logged_figure(columns, facts(batch_per_device=None))
    assert figure.throughput is None
    assert codes(figure) == {DoubtCode.SCOPE_AMBIGUOUS}


def test_the_time_between_epochs_is_no_training(step_seconds, true_rate):
    wall = np.cumsum(step_seconds)
    wall[200:] += 60
    columns = {
        "epoch": np.repeat([0.0, 1.0], 200),
        "step": np.tile(np.arange(200.0), 2),
        "wall": 1.6e9 + wall,
    }
    assert logged_figure(columns, facts()).throughput == close_to(true_rate)


@pytest.mark.parametrize("ranks", [2, 8, 32])
@pytest.mark.parametrize("tagged", [True, False])
def test_ranks_that_print_by_turns_are_one_report_a_step(step_seconds, ranks, tagged):
    random = np.random.default_rng(3)
    lines = ranks * STEPS
    rank = np.concatenate([random.permutation(ranks) for _ in range(STEPS)]).astype(float)
    columns = {
        "step": np.repeat(np.arange(1.0, STEPS + 1), ranks),
        "rate": BATCH / np.repeat(step_seconds, ranks) * (1 + 0.001 * random.standard_normal(lines)),
    }
    if tagged:
        columns["rank"] = rank
    figure = logged_figure(columns, facts(scope=Scope.RANK, every_rank=True, world_size=None))
    assert figure.world_size == ranks
    assert figure.steps == STEPS
    assert figure.throughput == close_to(BATCH * ranks * (STEPS - 20) / step_seconds[20:].sum())


def test_a_rate_of_all_ranks_printed_by_each_is_counted_once(step_seconds, true_rate):
    columns = {
        "step": np.repeat(np.arange(1.0, STEPS + 1), WORLD),
        "rank": np.tile(np.arange(float(WORLD)), STEPS),
        "rate": np.repeat(BATCH * WORLD / step_seconds, WORLD),
    }
    assert logged_figure(columns, facts(every_rank=True)).throughput == close_to(true_rate)


def test_a_range_of_batches_says_itself_how_many_steps_it_is(step_seconds, true_rate):
    first = np.arange(0.0, STEPS, 20)
    blocks = step_seconds.reshape(-1, 20).sum(axis=1)
    columns = {"step": first, "last_step": first + 19, "rate": BATCH * WORLD * 20 / blocks}
    figure = logged_figure(columns, facts())
    assert figure.steps == STEPS
    assert figure.throughput == close_to(true_rate, 0.005)


def test_one_report_an_epoch_stands_for_its_last_steps_number():
    columns = {"epoch": np.arange(1.0, 31), "step": np.full(30, 358.0), "ms": np.full(30, 250.0)}
    figure = logged_figure(columns, facts())
    assert figure.steps == 30 * 358
    assert figure.throughput == close_to(BATCH * WORLD / 0.25)


def test_steps_a_second_become_samples_where_the_batch_is_known():
    columns = {"step": np.arange(1.0, 101), "rate": np.full(100, 4.0)}
    figure = logged_figure(columns, facts(unit="steps"))
    assert (figure.throughput, figure.unit) == (close_to(4 * BATCH * WORLD), "samples")


def test_steps_are_never_given_as_samples():
    columns = {"step": np.arange(1.0, 101), "rate": np.full(100, 4.0)}
    figure = logged_figure(columns, facts(unit="steps", batch_per_device=None))
    assert (figure.throughput, figure.steps_per_second) == (None, close_to(4))


@pytest.mark.parametrize(
    ("known", "missing"),
    [
        ({"batch_per_device": 32, "world_size": None}, "number of devices: give --devices"),
        ({"batch_per_device": None, "world_size": 8}, "batch of a device: give --batch"),
        ({"batch_per_device": None, "world_size": None}, "--batch and --devices, or --samples-per-step"),
    ],
)
def test_the_sentence_names_what_is_missing_and_no_more(known, missing):
    columns = {"step": np.arange(1.0, 101), "seconds": np.full(100, 0.25)}
    figure = logged_figure(columns, facts(**known))
    (doubt,) = figure.doubts
    assert (figure.throughput, figure.steps_per_second) == (None, close_to(4))
    assert missing in doubt.message and "4 steps/s" in doubt.message


def test_samples_printed_beside_the_time_of_a_step_make_a_rate_of_it():
    """As with a batch that is ramped up: 100 steps of 8 in 1 s each, then 100 of 16 in 2 s."""
    columns = {
        "step": np.arange(1.0, 201),
        "seconds": np.repeat([1.0, 2.0], 100),
        "step_samples": np.repeat([8.0, 16.0], 100),
    }
    figure = logged_figure(columns, facts(batch_per_device=None, world_size=None))
    assert figure.throughput == close_to(8)


def test_what_a_program_concludes_is_given_with_a_doubt_where_nothing_else_tells():
    columns = {"step": np.arange(1.0, 21), "loss": np.linspace(5, 3, 20)}
    figure = logged_figure(columns, facts(own_rate=12.5))
    assert figure.throughput == 12.5
    assert DoubtCode.OWN_FIGURE in codes(figure)


def test_a_last_line_that_is_cut_short_or_holds_the_end_of_the_run_does_not_count():
    rates = np.append(np.full(40, 1137.7), 11.0)
    figure = logged_figure({"step": np.arange(1.0, 42), "rate": rates}, facts())
    assert figure.throughput == close_to(1137.7)


def test_a_few_reports_that_took_most_of_the_time_are_doubted():
    rates = np.full(100, 1000.0)
    rates[50:53] = 5.0
    figure = logged_figure({"step": np.arange(1.0, 101), "rate": rates}, facts())
    assert DoubtCode.UNEVEN_SPEED in codes(figure) or DoubtCode.NEVER_SETTLED in codes(figure)


def test_lines_in_no_order_are_doubted():
    random = np.random.default_rng(8)
    order = random.permutation(60)
    columns = {"step": np.arange(1.0, 61)[order], "rate": np.full(60, 100.0)}
    assert DoubtCode.OUT_OF_ORDER in codes(logged_figure(columns, facts()))
    wall = {"wall": 1.6e9 + np.arange(60)[order] * 0.25}
    assert DoubtCode.OUT_OF_ORDER in codes(logged_figure(wall, facts()))


def test_epochs_whose_steps_begin_again_are_in_order():
    columns = {"step": np.tile([100.0, 200, 300], 20), "rate": np.full(60, 100.0)}
    assert not codes(logged_figure(columns, facts()))


def test_epochs_that_begin_again_are_doubted():
    columns = {
        "epoch": np.tile(np.repeat([0.0, 1.0], 20), 2),
        "step": np.tile(np.arange(20.0), 4),
        "rate": np.full(80, 100.0),
    }
    assert codes(logged_figure(columns, facts())) == {DoubtCode.LINES_MISSING}


def test_steps_that_no_line_reports_are_doubted():
    columns = {"step": np.append(np.arange(10.0, 310, 10), np.arange(5000.0, 5300, 10))}
    columns["rate"] = np.full(60, 100.0)
    assert codes(logged_figure(columns, facts())) == {DoubtCode.LINES_MISSING}


def test_settings_with_two_values_are_doubted():
    columns = {"step": np.arange(1.0, 41), "rate": np.full(40, 100.0)}
    figure = logged_figure(columns, facts(conflicting=("world_size",)))
    assert codes(figure) == {DoubtCode.SETTINGS_CONFLICT}


def test_a_batch_of_all_devices_is_shared_out():
    columns = {"step": np.arange(1.0, 101), "seconds": np.full(100, 0.5)}
    figure = logged_figure(columns, facts(batch_per_device=None, global_batch=1024))
    assert (figure.throughput, figure.batch_per_device) == (close_to(2048), 128)


def test_a_handful_of_lines_is_too_short_a_window():
    columns = {"step": np.arange(1.0, 6), "rate": np.full(5, 100.0)}
    figure = logged_figure(columns, facts())
    assert figure.throughput == close_to(100)
    assert codes(figure) == {DoubtCode.WINDOW_TOO_SHORT}


def test_a_log_without_progress_has_no_figure_and_says_why():
    figure = logged_figure({}, facts())
    assert (figure.throughput, figure.steps) == (None, 0)
    assert codes(figure) == {DoubtCode.UNKNOWN_SHAPE}


def test_speed_that_changes_near_the_end_never_settles():
    noise = 1 + 0.01 * np.random.default_rng(4).standard_normal(400)
    columns = {"step": np.arange(1.0, 401), "rate": np.repeat([300.0, 100.0], [350, 50]) * noise}
    assert codes(logged_figure(columns, facts())) == {DoubtCode.NEVER_SETTLED}


def test_a_warm_up_of_most_of_the_log_is_doubted():
    rates = np.concatenate([np.full(250, 100.0), np.full(150, 200.0)])
    rates *= 1 + 0.001 * np.random.default_rng(1).standard_normal(400)
    figure = logged_figure({"step": np.arange(1.0, 401), "rate": rates}, facts())
    assert figure.throughput == close_to(200)
    assert codes(figure) == {DoubtCode.WARMUP_PAST_WINDOW}


def test_a_programs_own_mean_of_rates_is_doubted_where_time_says_otherwise(step_seconds):
    noisy = BATCH * WORLD / (step_seconds * np.random.default_rng(2).uniform(0.7, 1.3, STEPS))
    columns = {"step": np.arange(1.0, STEPS + 1), "rate": noisy}
    assert DoubtCode.MEAN_OF_RATES in codes(logged_figure(columns, facts(own_rate=float(noisy.mean()))))
    assert DoubtCode.MEAN_OF_RATES not in codes(logged_figure(columns, facts(own_rate=None)))


def test_a_programs_own_figure_that_agrees_is_not_doubted():
    rates = np.full(100, 500.0)
    figure = logged_figure({"step": np.arange(1.0, 101), "rate": rates}, facts(own_rate=500.0))
    assert not codes(figure)


def test_a_loss_that_is_no_number_is_doubted_and_not_given_as_the_final_one():
    columns = {"step": np.arange(1.0, 201), "rate": np.full(200, 5.0), "loss": np.linspace(7, 3, 200)}
    columns["loss"][-1] = np.inf
    figure = logged_figure(columns, facts())
    assert figure.final_loss is None
    assert codes(figure) == {DoubtCode.NAN_LOSS}


def test_a_loss_that_does_not_fall_is_doubted():
    columns = {"step": np.arange(1.0, 201), "rate": np.full(200, 5.0), "loss": np.linspace(3, 7, 200)}
    figure = logged_figure(columns, facts())
    assert figure.final_loss == 7
    assert codes(figure) == {DoubtCode.LOSS_NOT_FALLING}


def test_runs_with_the_same_times_to_the_last_digit_are_copies():
    random = np.random.default_rng(5)
    one, other = ({"rate": random.uniform(1, 2, 50), "loss": np.ones(50)} for _ in range(2))
    duplicates = find_copies(times_digest(columns) for columns in (one, other, dict(one)))
    assert duplicates == {0: CopiedLogs(first=0, count=2), 2: CopiedLogs(first=0, count=2)}


def test_a_few_equal_numbers_make_no_copy():
    assert find_copies(times_digest({"rate": np.ones(3)}) for _ in range(2)) == {}


def test_several_processes_that_print_one_step_where_one_should_leave_the_scope_open():
    columns = {
        "step": np.repeat(np.arange(10.0, 110, 10), 3),
        "rate": np.full(30, 46.5),
        "loss": 8 + np.arange(30) / 1000,
    }
    figure = logged_figure(columns, LogFacts("images", Scope.GLOBAL))
    assert figure.throughput is None
    assert DoubtCode.SCOPE_AMBIGUOUS in {doubt.code for doubt in figure.doubts}


def test_one_process_that_prints_each_step_twice_still_has_its_figure():
    columns = {
        "step": np.repeat(np.arange(1.0, 31), 2),
        "rate": np.full(60, 46.5),
        "loss": np.repeat(np.linspace(8, 7, 30), 2),
    }
    assert logged_figure(columns, LogFacts("images", Scope.GLOBAL)).throughput == pytest.approx(46.5)


def test_a_line_without_its_step_among_others_is_left_out():
    columns = {"step": np.arange(10.0, 410, 10), "wall": 1.6e9 + 5.25 * np.arange(40)}
    columns = {name: np.insert(column, 7, np.nan) for name, column in columns.items()}
    figure = logged_figure(columns, facts())
    assert figure.throughput == close_to(BATCH * WORLD * 10 / 5.25)
