"""The file of reference rates, for a machine and for a run, and what a run leaves in both."""

from dataclasses import replace

import pytest
from fabricated_runs import fabricate, keep, record

from trainmark.measure.utilisation import ReferenceRate
from trainmark.runner.run import save_reference_rates
from trainmark.store.files import StoreError
from trainmark.store.measurements import read_reference_rates, write_reference_rates
from trainmark.store.report import report_of

AXES = (("image_size", 64),)
KNOWN = ReferenceRate("cpu", "resnet50", AXES, "fp32", 200.0, 32, "0.1.0", "2024-01-02T03:04:05+00:00")


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("TRAINMARK_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def run(tmp_path):
    """Without the fused step; on the device `cpu`, on images of 64."""
    made = fabricate(tmp_path / "runs", "a", {})
    train(made, "stock", 100.0)
    return made


def train(run, case, rate, **changes):
    made = record(case, 1, rate)
    keep(run, replace(made, key=replace(made.key, axes=(("image_size", 64),), data="synthetic", **changes)))


def finished(run):
    """What the end of the run had to say."""
    notes = []
    save_reference_rates(run, notes.append)
    return notes


def test_what_is_kept_comes_back(tmp_path):
    other = replace(KNOWN, device="NVIDIA H200", precision="half", rate=12_345.678901234567)
    write_reference_rates(tmp_path / "new", (KNOWN, other))
    assert read_reference_rates(tmp_path / "new") == (KNOWN, other)


def test_a_folder_without_the_file_has_no_reference(tmp_path):
    assert read_reference_rates(tmp_path / "nowhere") == ()


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"schema": 2, "yardsticks": []}',
        '{"schema": 1, "yardsticks": [{"device": "x"}]}',
        '{"schema": 1, "yardsticks": [{"device": "x", "workload": "w", "image_size": 64, "precision": "p",'
        ' "rate": 0, "batch": 1, "version": "1", "taken": "t"}]}',
    ],
)
def test_a_damaged_file_is_refused_in_one_sentence(tmp_path, text):
    (tmp_path / "light.json").write_text(text)
    with pytest.raises(StoreError, match=r"light\.json .*\.$") as refused:
        read_reference_rates(tmp_path)
    assert "\n" not in str(refused.value)


def test_a_run_of_the_fused_step_leaves_its_reference_in_both_places(home, run):
    train(run, "fused", 250.0, compiler="fused")
    assert finished(run) == []
    (reference,) = read_reference_rates(home)
    assert (reference.device, reference.rate, reference.batch) == ("cpu", 250.0, 32)
    assert read_reference_rates(run.path) == report_of(run).reference_rates == (reference,)


def test_a_run_is_held_against_what_was_measured_before(home, run):
    write_reference_rates(home, (KNOWN, replace(KNOWN, device="another")))
    before = (home / "light.json").stat().st_mtime_ns
    assert finished(run) == []
    assert read_reference_rates(run.path) == (KNOWN,)
    assert (home / "light.json").stat().st_mtime_ns == before


def test_a_run_on_a_device_without_a_reference_writes_nothing(home, run):
    assert finished(run) == []
    assert not home.exists()
    assert not (run.path / "light.json").exists()


def test_a_slower_run_does_not_replace_a_faster_reference(home, run):
    train(run, "fused", 250.0, compiler="fused")
    faster = replace(KNOWN, rate=1_000.0)
    write_reference_rates(home, (faster,))
    assert finished(run) == []
    assert read_reference_rates(home) == read_reference_rates(run.path) == (faster,)


def test_a_home_that_cannot_be_written_costs_one_note_and_no_share(home, run):
    home.write_text("a file where the folder would be")
    train(run, "fused", 250.0, compiler="fused")
    (note,) = finished(run)
    assert str(home) in note
    assert [each.rate for each in read_reference_rates(run.path)] == [250.0]


def test_a_damaged_home_costs_one_note(home, run):
    home.mkdir()
    (home / "light.json").write_text("{")
    (note,) = finished(run)
    assert "light.json is damaged" in note
