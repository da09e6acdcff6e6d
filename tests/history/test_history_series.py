"""Series of results: what makes a point, what makes a line, and in which order points stand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from trainmark.measure.history.series import (
    HistorySeries,
    RunPoint,
    TrialObservation,
    ordered_by,
    series_of,
    since,
    version_key,
)
from trainmark.measure.key import Key

KEY = Key("resnet50", "pytorch", "2.9.1", precision="fp32", batch_per_device=32)


def trial(run="one", time=10.0, key=KEY, machine="bench-1", throughput=100.0, **others) -> TrialObservation:
    return TrialObservation(run, time, key, machine, "images", throughput, **others)


def series(*facts: dict[str, str]) -> HistorySeries:
    points = tuple(RunPoint(f"run-{index}", index, (1.0,), own) for index, own in enumerate(facts))
    return HistorySeries(KEY, "bench-1", "images", points)


def runs(line: HistorySeries) -> list[str]:
    return [point.run for point in line.points]


def test_the_trials_of_a_run_are_one_point_that_starts_with_the_first():
    (line,) = series_of([trial(time=30, throughput=3.0), trial(time=10, throughput=1.0)])
    assert [(point.time, point.values) for point in line.points] == [(10, (1.0, 3.0))]


def test_a_new_framework_version_stays_on_the_line_of_its_case():
    newer = replace(KEY, framework_version="2.13.0")
    (line,) = series_of([trial(), trial("two", 20, newer)])
    assert runs(line) == ["one", "two"]


def test_two_versions_in_one_run_are_two_points():
    (line,) = series_of([trial(), trial(key=replace(KEY, framework_version="2.13.0"))])
    assert len(line.points) == 2


OWN = Key("train")


def test_two_commands_of_ones_own_program_are_two_lines_of_their_own_address():
    slow, fast = ({"command": f"python train.py --width {width}"} for width in (1024, 256))
    lines = series_of([trial(key=OWN, facts=slow), trial("two", 20, OWN, facts=fast)])
    assert [line.command for line in lines] == [slow["command"], fast["command"]]
    assert lines[0].id != lines[1].id


def test_another_command_of_a_built_in_workload_stays_on_the_line_that_its_key_names():
    (line,) = series_of([trial(facts={"command": "a"}), trial("two", 20, facts={"command": "b"})])
    assert (line.command, line.id) == ("", HistorySeries(line.key, "bench-1", "images", ()).id)


@pytest.mark.parametrize("other", [{"machine": "bench-2"}, {"key": replace(KEY, batch_per_device=64)}])
def test_another_machine_or_batch_is_another_line(other):
    assert len(series_of([trial(), trial(**other)])) == 2


def test_points_stand_in_order_of_time_whatever_the_order_of_the_runs():
    (line,) = series_of([trial("late", 20), trial("early", 10)])
    assert runs(line) == ["early", "late"]


def test_facts_in_which_trials_differ_name_both_values_and_measured_ones_their_median():
    first = {"driver": "550", "clock_mhz": "1980"}
    second = {"driver": "560", "clock_mhz": "1990"}
    (line,) = series_of([trial(facts=first), trial(time=11, facts=second)])
    assert dict(line.points[0].facts) == {"driver": "550 / 560", "clock_mhz": "1985"}


def test_a_doubt_of_less_than_half_of_the_trials_is_not_the_points():
    trials = [trial(time=time, doubts=("noisy-trials",) if time == 1 else ()) for time in range(3)]
    (line,) = series_of(trials)
    assert line.points[0].doubts == ()


def test_versions_sort_by_number_and_candidates_before_releases():
    versions = ["2.13.0", "2.9.1", "2.13.0rc1", "2.13.0+cu130"]
    assert sorted(versions, key=version_key) == ["2.9.1", "2.13.0rc1", "2.13.0", "2.13.0+cu130"]


def test_results_ordered_by_driver_leave_out_and_count_those_without_one():
    line, left_out = ordered_by(series({"driver": "560"}, {}, {"driver": "550"}), "driver")
    assert (runs(line), left_out) == (["run-2", "run-0"], 1)


def test_commits_stand_in_the_order_of_the_repository():
    line, _ = ordered_by(series({"commit": "b"}, {"commit": "a"}), "commit", {"a": 0, "b": 1})
    assert runs(line) == ["run-1", "run-0"]


def test_commits_of_no_known_repository_stand_as_they_were_first_measured():
    line, _ = ordered_by(series({"commit": "b"}, {"commit": "a"}, {"commit": "b"}), "commit")
    assert runs(line) == ["run-0", "run-2", "run-1"]


def test_results_from_before_a_time_are_left_out():
    assert runs(since(series({}, {}, {}), 1)) == ["run-1", "run-2"]


def test_the_id_of_a_series_does_not_depend_on_its_points():
    assert series({}).id == series({}, {}).id
    assert series({}).id != replace(series({}), machine="bench-2").id
