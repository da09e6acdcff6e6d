"""What was changed in a packed file is named: which member, which trial, which number."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from measured_runs import CASE, TWO_RANKS, edited, forged, measured_run, members, repacked

from trainmark.measure.doubts import DoubtCode
from trainmark.store.archive import pack
from trainmark.store.manifest import MANIFEST
from trainmark.store.verify import PackVerification, verify

FIGURE, SPEC = f"trials/{CASE}/01/figure.json", f"trials/{CASE}/01/trial.json"
EVENTS = f"trials/{CASE}/01/events/rank0.jsonl"


@pytest.fixture
def contents(file) -> dict[str, bytes]:
    return members(file)


@pytest.fixture
def changed(tmp_path):
    """Verify these members as a packed file, whose digests are those of before or mended."""

    def check(contents: dict[str, bytes], mended: bool = True) -> PackVerification:
        path = repacked(tmp_path / "changed.trainmark", contents)
        return verify(forged(path, tmp_path / "unpacked") if mended else path)

    return check


def sentences(verification: PackVerification) -> str:
    return "\n".join(difference.sentence for difference in verification.differences)


def test_every_trial_is_recomputed(run, file):
    verification = verify(file)
    assert verification.verified and len(verification.trials) == 4
    throughputs = {trial.name: trial.figure.throughput for trial in verification.trials if trial.figure}
    stored = {
        f"{record.spec.case}/{record.spec.repeat:02d}": record.figure.throughput
        for record in run.records()
        if record.figure
    }
    assert throughputs == pytest.approx(stored, rel=1e-12)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("figure", "throughput"), 99.0),
        (("figure", "interval", "low"), 79.9),
        (("figure", "step_times", "p99"), 1.0),
        (("figure", "window", "first"), 11),
        (("figure", "loss_last"), 0.5),
        (("figure", "samples_per_joule"), 7.5),
        (("figure", "unit"), "images"),
    ],
)
def test_a_forged_number_is_named(contents, changed, path, value):
    verification = changed(edited(contents, FIGURE, *path, value=value))
    (difference,) = (each for each in verification.differences if each.place == ".".join(path))
    assert (difference.member, difference.trial, difference.stored) == (FIGURE, f"{CASE}/01", str(value))
    assert verification.trials[0].differences and not verification.trials[1].differences


def test_the_sentence_has_both_numbers(contents, changed):
    verification = changed(edited(contents, FIGURE, "figure", "throughput", value=99.0))
    recomputed = verification.trials[0].figure.throughput
    assert sentences(verification) == f"{FIGURE}: figure.throughput is 99.0, but {recomputed} by the events."


def test_a_doubt_that_was_removed_is_named(tmp_path, changed):
    run = measured_run(
        tmp_path, rates={CASE: (80.0,)}, facts={"epochs": 1, "recipe": "r", "departures": ["x"]}
    )
    contents = members(pack(run, tmp_path / "doubted.trainmark").path)
    figure = json.loads(contents[FIGURE])["figure"]
    assert DoubtCode.RECIPE_CHANGED.value in [doubt["code"] for doubt in figure["doubts"]]
    verification = changed(edited(contents, FIGURE, "figure", "doubts", value=[]))
    assert [difference.place for difference in verification.differences] == ["figure.doubts"]


@pytest.mark.parametrize("code, places", [("throttled", ["figure.doubts"]), ("warmup-past-window", [])])
def test_a_doubt_that_was_added_is_named_unless_an_earlier_version_raised_it(contents, changed, code, places):
    doubts = [
        *json.loads(contents[FIGURE])["figure"]["doubts"],
        {"code": code, "severity": "note", "message": "x"},
    ]
    verification = changed(edited(contents, FIGURE, "figure", "doubts", value=doubts))
    assert [difference.place for difference in verification.differences] == places


def test_a_changed_event_shows_in_its_file_and_in_the_figures(contents, changed):
    lines = contents[EVENTS].splitlines(keepends=True)
    step = json.loads(lines[40])
    lines[40] = json.dumps({**step, "samples": 800}).encode() + b"\n"
    verification = changed({**contents, EVENTS: b"".join(lines)}, mended=False)
    assert f"{EVENTS}: the file was changed." in sentences(verification)
    assert f"{FIGURE}: figure.throughput is " in sentences(verification)
    assert {difference.trial for difference in verification.differences} == {f"{CASE}/01"}


def test_events_that_were_cut_off_carry_no_figure(contents, changed):
    verification = changed({**contents, EVENTS: contents[EVENTS].splitlines(keepends=True)[0]})
    assert f"{FIGURE}: figure does not follow from the events" in sentences(verification)


def test_a_forged_manifest_is_named(contents, changed):
    plain = json.loads(contents[MANIFEST])
    plain["trials"][0]["throughput"] = 1e6
    verification = changed({**contents, MANIFEST: json.dumps(plain).encode()})
    assert sentences(verification).startswith(f"manifest.json: throughput of {CASE}/01 is 1000000.0, but ")


def test_a_changed_log_is_named(contents, changed):
    log = f"trials/{CASE}/02/logs/rank0.log"
    verification = changed({**contents, log: b"all is well\n"}, mended=False)
    assert f"{log}: the file was changed." in sentences(verification)


@pytest.mark.parametrize("member", [EVENTS, SPEC, FIGURE, "run.json", "suite.yaml"])
def test_a_missing_member_is_named(contents, changed, member):
    del contents[member]
    assert f"{member}: the file is missing." in sentences(changed(contents, mended=False))


def test_an_added_member_is_named(contents, changed):
    extra = f"trials/{CASE}/01/events/rank1.jsonl"
    verification = changed({**contents, extra: contents[EVENTS]}, mended=False)
    assert f"{extra}: the file was added." in sentences(verification)


def test_a_trial_left_out_of_everything_but_the_manifest_is_named(contents, changed):
    left = {name: data for name, data in contents.items() if f"{TWO_RANKS}/01/" not in name}
    verification = changed(left, mended=False)
    assert f"manifest.json: it lists {TWO_RANKS}/01, which is not there." in sentences(verification)


def test_a_key_that_was_changed_to_another_device_is_named(contents, changed):
    verification = changed(edited(contents, FIGURE, "key", "device", value="NVIDIA H200"))
    assert f"{FIGURE}: key.device is NVIDIA H200, but cpu by trial.json." in sentences(verification)


def test_a_trial_of_another_run_is_named(contents, changed):
    verification = changed(edited(contents, SPEC, "uuid", value="0d0e3b76-0e1c-4dd0-9d5f-0f0f0f0f0f0f"))
    assert f"manifest.json: uuid of {CASE}/01 is " in sentences(verification)


def test_an_outcome_that_was_changed_is_named(contents, changed):
    crashed = f"trials/{CASE}/03/figure.json"
    verification = changed(edited(contents, crashed, "outcome", value="ok"))
    assert f"{crashed}: 'ok' as its outcome and its figure disagree." in sentences(verification)


def test_a_figure_of_another_processor_is_equal_to_the_last_bits(contents, changed):
    throughput = json.loads(contents[FIGURE])["figure"]["throughput"]
    verification = changed(edited(contents, FIGURE, "figure", "throughput", value=throughput * (1 + 1e-14)))
    assert verification.verified


def test_a_workload_that_is_a_path_is_not_imported(contents, changed, tmp_path):
    family = tmp_path / "hostile"
    family.mkdir()
    (family / "workload.py").write_text(f"open({str(tmp_path / 'imported')!r}, 'w')\n")
    contents = edited(contents, SPEC, "key", "workload", value=str(family))
    changed(edited(contents, FIGURE, "key", "workload", value=str(family)))
    assert not (tmp_path / "imported").exists()


def test_nothing_is_left_of_a_verification(file, tmp_path):
    shutil.copy(file, tmp_path / "copy.trainmark")
    (tmp_path / "scratch").mkdir()
    verify(tmp_path / "copy.trainmark", scratch=tmp_path / "scratch")
    assert list((tmp_path / "scratch").iterdir()) == [] and len(list(Path(tmp_path).iterdir())) == 2
