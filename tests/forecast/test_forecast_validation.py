"""The forecast of published rows: what it may see, and what it makes of it."""

from dataclasses import replace

import pytest

from trainmark.forecast.fabric import EDR, Size
from trainmark.forecast.forecast import forecast
from trainmark.forecast.model import Coefficients, ForecastCase, estimate_step
from trainmark.forecast.series import UNSEEN_SOURCES, published_series
from trainmark.forecast.step import fill_buckets, layers_of
from trainmark.forecast.validation import (
    KNOWN_PROGRAM,
    UNSEEN_FRAMEWORK,
    ErrorSpread,
    FittedModel,
    fit_coefficients,
    fit_published,
    observations,
    spread_of,
    summary,
    validate,
    validate_unseen,
)
from trainmark.logs.ledger import load

CASE = ForecastCase(
    steps={Size(1, 1): 0.2, Size(1, 8): 0.22},
    batch=128,
    buckets=fill_buckets(layers_of("resnet50")),
    fabric=EDR,
    loaded=True,
)
LEARNED = FittedModel(Coefficients(0.7, 0.2, 0.2), ErrorSpread(-0.4, 0.8), {})


def faster(entries, framework, factor):
    """The ledger, had this framework's rows of several nodes been otherwise."""
    return [
        replace(entry, row=replace(entry.row, throughput=entry.row.throughput * factor))
        if entry.row.framework == framework and (entry.row.nodes or 1) > 1 and entry.row.throughput
        else entry
        for entry in entries
    ]


@pytest.mark.parametrize("framework", ["pytorch", "oneflow", "mindspore"])
def test_no_row_of_several_nodes_changes_the_forecast_of_its_own_framework(framework):
    entries = load()
    before, after = validate(entries), validate(faster(entries, framework, 0.5))
    own = [place for place, check in enumerate(before) if check.series.row.framework == framework]
    assert own
    for place in own:
        assert after[place].predicted == before[place].predicted
        assert after[place].interval == before[place].interval
        assert after[place].published == before[place].published / 2


def test_the_rows_of_other_frameworks_do_teach():
    entries = load()
    before, after = validate(entries), validate(faster(entries, "oneflow", 0.5))
    moved = [a.predicted != b.predicted for a, b in zip(after, before, strict=True)]
    assert any(moved)


def test_series_that_are_alike_leave_together():
    entries = load()
    doubled = [
        replace(entry, row=replace(entry.row, throughput=entry.row.throughput / 2))
        if entry.source == "oneflow-2020-08" and entry.row.nodes != 1 and entry.row.batch_per_device == 128
        else entry
        for entry in entries
    ]
    of = [(c.series.source, c.series.name, c.predicted) for c in validate(entries, KNOWN_PROGRAM)]
    again = [(c.series.source, c.series.name, c.predicted) for c in validate(doubled, KNOWN_PROGRAM)]
    twin = ("dlperf-v1", "resnet50 oneflow 0.2.0 fp32 b128 real")
    assert [row for row in of if row[:2] == twin] == [row for row in again if row[:2] == twin]


def test_only_rows_of_one_node_and_at_most_eight_devices_are_fitted_on():
    sizes = {size for series in published_series(load()) for size in series.case.steps}
    assert {size.nodes for size in sizes} == {1}
    assert max(size.devices for size in sizes) == 8


def test_every_published_series_with_several_nodes_is_there_and_a_copy_once():
    all_series = published_series(load())
    rows = sum(len(series.targets) for series in all_series)
    assert (len(all_series), rows) == (46, 91)
    assert [series.also_in for series in all_series if series.source == "dlperf-ngc-pytorch"] == [
        ("dlperf-v1",)
    ] * 2


def test_series_that_came_after_the_model_are_forecast_and_fitted_on_by_none():
    entries = load()
    later = {series.source for series in published_series(entries, unseen=True)}
    assert later == UNSEEN_SOURCES
    earlier = [entry for entry in entries if entry.source not in UNSEEN_SOURCES]
    assert published_series(earlier) == published_series(entries)
    assert {check.series.source for check in validate_unseen(entries)} == UNSEEN_SOURCES


def test_a_series_is_odd_by_its_rows_of_one_node_alone():
    series = published_series(load())[0]
    for step, odd in ((0.2, False), (0.3, True), (0.19, True)):
        case = replace(series.case, steps={Size(1, 1): 0.2, Size(1, 8): step})
        assert replace(series, case=case, targets={}).odd is odd


def test_the_fit_finds_the_coefficients_that_made_the_rows():
    made = Coefficients(0.5, 0.3, 0.1)
    series = [
        replace(
            one,
            targets={
                size: one.case.throughput(size, estimate_step(one.case, size, made).seconds)
                for size in one.targets
            },
        )
        for one in published_series(load())
    ]
    assert fit_coefficients(observations(series)) == pytest.approx(made, rel=0.01)


def test_no_coefficient_is_below_zero():
    series = [
        replace(one, targets={size: rate * 3 for size, rate in one.targets.items()})
        for one in published_series(load())
    ]
    assert min(fit_coefficients(observations(series))) >= 0


def test_the_intervals_cover_about_as_often_as_they_say():
    for scheme in (UNSEEN_FRAMEWORK, KNOWN_PROGRAM):
        assert 0.75 <= summary(validate(load(), scheme)).coverage <= 0.9


def test_the_spread_is_of_order_statistics_that_leave_a_tenth_on_each_side():
    assert spread_of([float(n) for n in range(1, 20)]) == ErrorSpread(2.0, 18.0)
    assert spread_of([1.0, 2.0]) == ErrorSpread(1.0, 2.0)


def test_a_measured_size_is_forecast_as_it_was_measured():
    (prediction,) = forecast(CASE, [Size(1, 8)], LEARNED)
    assert prediction.step_seconds == 0.22


def test_more_nodes_are_never_faster_a_step_and_less_certain():
    predictions = forecast(CASE, [Size(2**n, 8) for n in range(10)], LEARNED)
    steps = [one.step_seconds for one in predictions]
    widths = [one.interval.high / one.interval.low for one in predictions]
    assert steps == sorted(steps)
    assert widths == sorted(widths)


def test_a_forecast_starts_from_the_widest_measured_size():
    seen = replace(CASE, steps={**CASE.steps, Size(2, 8): 0.3})
    (alone,), (after,) = (forecast(case, [Size(4, 8)], LEARNED) for case in (CASE, seen))
    (two,) = forecast(CASE, [Size(2, 8)], LEARNED)
    assert after.step_seconds == pytest.approx(0.3 + alone.step_seconds - two.step_seconds)


def test_devices_a_node_that_were_not_measured_are_reckoned_from_those_that_were():
    half = replace(CASE, steps={Size(1, 1): 0.2, Size(1, 4): 0.22})
    (prediction,) = forecast(half, [Size(1, 8)], LEARNED)
    assert prediction.step_seconds == pytest.approx(0.23)


def test_a_loader_limits_what_a_node_can_train():
    (prediction,) = forecast(replace(CASE, loader=2000), [Size(2, 8)], LEARNED)
    assert prediction.throughput == pytest.approx(4000)


def test_no_interval_reaches_beyond_the_ideal():
    (prediction,) = forecast(
        replace(CASE, steps={Size(1, 1): 0.2, Size(1, 8): 0.2001}), [Size(1, 8)], LEARNED
    )
    assert prediction.interval.high == pytest.approx(CASE.ideal(Size(1, 8)))


def test_what_is_learned_slows_more_nodes_and_leaves_room_on_both_sides():
    learned = fit_published(load())
    assert all(value >= 0 for value in learned.coefficients)
    assert learned.spread.low < 0 < learned.spread.high
