"""A damaged file costs itself and no more: it is named, the rest of its run and all other runs go on."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from fabricated_runs import CREATED, fabricate, keep, record

from trainmark.events import RunEnd, RunStart, Step, stream
from trainmark.pages.run.page import run_page
from trainmark.pages.run.record import run_json
from trainmark.store import index
from trainmark.store.files import StoreError
from trainmark.store.overview import overview
from trainmark.store.report import report_of
from trainmark.store.run import RUN, SUITE, all_runs, find_run
from trainmark.store.trial import FIGURE, SPEC
from trainmark.view import html, markdown

CASE = "pytorch-fp32-b32-1n1g"
GARBAGE = [b"", b"{", b"\xff\xfe", b"[]", b"null", b"{}", b"5", b"[" * 100_000]


@pytest.fixture
def runs(tmp_path):
    fabricate(tmp_path, "older", created=CREATED)
    fabricate(tmp_path, "newer", created=CREATED + 60)
    return tmp_path


def trial(runs, repeat=2):
    return runs / "older" / "trials" / CASE / f"{repeat:02d}"


def edit(path, change):
    plain = json.loads(path.read_bytes())
    change(plain)
    path.write_text(json.dumps(plain))


def with_events(folder, ended=True):
    """A trial of 100 samples a second."""
    (folder / "events").mkdir()
    steps = [Step(0, number, 100.0 + 0.1 * (number + 1), None, 10) for number in range(200)]
    end = [RunEnd(0, 200.0, None)] if ended else []
    stream.write(folder / "events" / "rank0.jsonl", [RunStart(0, 1, 100.0, None), *steps, *end])


@pytest.mark.parametrize("garbage", GARBAGE, ids=lambda garbage: ascii(garbage)[:12])
def test_a_damaged_figure_without_events_is_left_out_and_named_everywhere(runs, garbage):
    (trial(runs) / FIGURE).write_bytes(garbage)
    run = find_run("older", runs)
    assert [each.spec.repeat for each in run.records()] == [1, 3]
    (damage,) = run.damaged.values()
    assert damage.path == f"trials/{CASE}/02/figure.json" and not damage.recovered
    document = report_of(find_run("older", runs))
    assert document.results[0].n == 2
    reports = [markdown.render(run_page(document)), html.render(run_page(document), "zh"), run_json(document)]
    assert all("02/figure.json" in text for text in reports)
    assert [row["status"] for row, _ in overview(runs)] == ["damaged", "finished"]
    assert index.query(runs, "SELECT count(*) FROM trials")[1] == [(5,)]
    assert [run for run, _ in index.damaged(runs)] == ["older"]


@pytest.mark.parametrize("whose_key", ["its own", "another trial's"])
def test_a_damaged_figure_is_computed_again_from_its_events(runs, whose_key):
    folder = trial(runs)
    with_events(folder)
    key = json.loads((folder / FIGURE).read_text())["key"]
    if whose_key == "its own":
        edit(folder / SPEC, lambda spec: spec.update(key=key, started=CREATED, fingerprint="f"))
    (folder / FIGURE).write_bytes(b"{")
    run = find_run("older", runs)
    _, again, _ = run.records()
    assert again.figure.throughput == pytest.approx(100) and again.outcome == "ok"
    (damage,) = run.damaged.values()
    assert damage.recovered and "computed again from its events" in damage.sentence


def test_events_without_an_end_do_not_stand_in_for_a_figure(runs):
    """The trial may have crashed: its outcome is lost with its figure."""
    with_events(trial(runs), ended=False)
    (trial(runs) / FIGURE).write_bytes(b"{")
    run = find_run("older", runs)
    assert len(run.records()) == 2
    assert "not every rank came to its end" in next(iter(run.damaged.values())).reason


@pytest.mark.parametrize("garbage", GARBAGE, ids=lambda garbage: ascii(garbage)[:12])
def test_a_damaged_spec_costs_what_was_asked_for_and_not_the_figure(runs, garbage):
    (trial(runs) / SPEC).write_bytes(garbage)
    run = find_run("older", runs)
    assert [(each.spec.case, each.spec.repeat) for each in run.records()] == [(CASE, n) for n in (1, 2, 3)]
    assert list(run.damaged) == [f"trials/{CASE}/02/trial.json"]


@pytest.mark.parametrize("garbage", GARBAGE, ids=lambda garbage: ascii(garbage)[:12])
def test_a_run_whose_info_is_damaged_is_listed_reported_and_not_resumed(runs, garbage):
    (runs / "older" / RUN).write_bytes(garbage)
    os.utime(runs / "older", (CREATED, CREATED))
    assert [(row["name"], row["status"]) for row, _ in overview(runs)] == [
        ("older", "damaged"),
        ("newer", "finished"),
    ]
    document = report_of(find_run("older", runs))
    assert len(document.trials) == 3 and "run.json" in markdown.render(run_page(document))
    with pytest.raises(StoreError, match=r"older/run.json is damaged"):
        find_run("older", runs).require_whole()


@pytest.mark.parametrize("instead", [None, Path.mkdir, os.mkfifo])
def test_trials_are_a_run_whatever_has_become_of_its_info(runs, instead):
    (runs / "older" / RUN).unlink()
    if instead:
        instead(runs / "older" / RUN)
    assert {run.path.name for run in all_runs(runs)} == {"older", "newer"}
    document = report_of(find_run("older", runs))
    assert document.results[0].n == 3 and [damage.path for damage in document.damaged] == [RUN]


def test_a_folder_without_info_and_trials_is_no_run(runs):
    (runs / "begun" / "trials" / CASE / ".01.part").mkdir(parents=True)
    assert {run.path.name for run in all_runs(runs)} == {"older", "newer"}


def test_a_run_without_its_info_is_as_old_as_its_first_trial_and_planned_what_it_has(runs):
    for repeat in (1, 2, 3):
        edit(trial(runs, repeat) / SPEC, lambda spec, repeat=repeat: spec.update(started=CREATED + repeat))
    (trial(runs, 2) / SPEC).write_bytes(b"{")
    (runs / "older" / RUN).write_bytes(b"{")
    info = find_run("older", runs).info
    assert (info.created, info.least) == (CREATED + 1, 3)


@pytest.mark.parametrize(
    "name", [SUITE, "environment.json", "facts.json", "nodes.json", "fabric.json", "light.json"]
)
@pytest.mark.parametrize("garbage", [b"\xff", b"[1]", b'{"nodes": [{"facts": 5}], "schema": 1}'])
def test_any_other_damaged_file_leaves_a_report_without_what_it_held(runs, name, garbage):
    (runs / "older" / name).write_bytes(garbage)
    run = find_run("older", runs)
    document = report_of(run)
    assert len(document.trials) == 3
    html.render(run_page(document))
    if garbage == b"\xff":
        assert list(run.damaged) == [name]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("created", value) for value in (None, "today", 1e300, -1)), ("name", 5), ("least", "3"),
        ("skipped", [["one"]]), ("skipped", 7), ("most", 10**30), ("folder", []),
    ],
)  # fmt: skip
def test_a_field_of_the_wrong_type_damages_one_run_and_no_other(runs, field, value):
    edit(runs / "older" / RUN, lambda plain: plain.update({field: value}))
    assert {run.path.name for run in all_runs(runs)} == {"older", "newer"}
    assert find_run("latest", runs).path.name in ("older", "newer")
    (damage,) = [run.damaged[RUN] for run in all_runs(runs) if run.info and run.damaged]
    assert field in damage.reason or "is no time" in damage.reason


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -5.0, 0.0, "100", None, True, 10**400])
def test_a_figure_that_cannot_be_is_not_shown(runs, value):
    edit(trial(runs) / FIGURE, lambda plain: plain["figure"].update(throughput=value))
    assert [each.spec.repeat for each in find_run("older", runs).records()] == [1, 3]


def test_a_spec_that_names_another_trial_leads_nowhere(runs):
    edit(trial(runs) / SPEC, lambda plain: plain.update(case="../../../elsewhere"))
    run = find_run("older", runs)
    assert {each.spec.case for each in run.records()} == {CASE}
    assert "it is of the trial ../../../elsewhere/02" in run.damaged[f"trials/{CASE}/02/trial.json"].reason


def test_a_unit_that_is_half_a_surrogate_pair_is_kept_and_shown(runs):
    run = find_run("older", runs)
    trial_record = record(CASE, 9, 1.0)
    keep(run, trial_record)
    edit(run.trials / CASE / "09" / FIGURE, lambda plain: plain["figure"].update(unit="rows \ud800"))
    assert index.query(runs, "SELECT max(throughput) FROM trials")[1]
    markdown.render(run_page(report_of(run))).encode()


def test_a_fifo_in_the_place_of_a_file_is_named_and_not_waited_for(runs):
    for name in (FIGURE, SPEC):
        (trial(runs) / name).unlink()
        os.mkfifo(trial(runs) / name)
    run = find_run("older", runs)
    assert len(run.records()) == 2
    assert all("no regular file" in damage.reason for damage in run.damaged.values())
