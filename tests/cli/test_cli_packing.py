"""`trainmark pack` and `trainmark verify` as people call them, with their exit codes."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "pack"))

from measured_runs import CASE, edited, measured_run, members, repacked


@pytest.fixture
def measured(tmp_path) -> Path:
    """A run named `measured` in ./runs."""
    return measured_run(tmp_path / "runs").path


def test_a_run_is_packed_by_its_name_and_verified(trainmark, measured):
    done = trainmark("pack", "measured")
    assert (done.code, done.err) == (0, "")
    assert "measured.trainmark: 4 trials, " in done.out
    done = trainmark("verify", "measured.trainmark")
    assert done.code == 0
    assert done.out.startswith("measured.trainmark: verified\n")
    assert "4 trials, 3 figures recomputed" in done.out


def test_a_changed_file_ends_with_1_and_names_the_change(trainmark, measured, tmp_path):
    trainmark("pack", "latest", "--out", "a.trainmark")
    figure = f"trials/{CASE}/02/figure.json"
    contents = members(tmp_path / "a.trainmark")
    repacked(tmp_path / "a.trainmark", edited(contents, figure, "figure", "throughput", value=500.0))
    done = trainmark("verify", "a.trainmark")
    assert done.code == 1
    assert f"{figure}: the file was changed.\n" in done.out
    assert f"{figure}: figure.throughput is 500.0, but " in done.out
    done = trainmark("verify", "a.trainmark", "--unpack", "copy", "--json")
    assert done.code == 1 and not (tmp_path / "copy").exists()
    differences = json.loads(done.out)["differences"]
    assert {"member": figure, "trial": f"{CASE}/02", "place": "figure.throughput"}.items() <= differences[
        1
    ].items()


@pytest.mark.parametrize("data", [b"", b"no archive", None])
def test_what_is_no_packed_run_ends_with_2(trainmark, tmp_path, data):
    if data is not None:
        (tmp_path / "file").write_bytes(data)
    done = trainmark("verify", "file")
    assert done.code == 2
    assert done.err.startswith("trainmark: file") and done.err.count("\n") == 1


def test_a_verified_run_is_unpacked_for_report(trainmark, measured, tmp_path):
    trainmark("pack", "measured")
    assert trainmark("verify", "measured.trainmark", "--unpack", "runs/copy").code == 0
    done = trainmark("compare", "measured", "copy", "--json")
    assert done.code == 0
    assert {row["ratio"] for row in json.loads(done.out)["rows"]} == {1.0}


def test_json_has_the_digest_and_what_was_masked(trainmark, measured):
    packed = json.loads(trainmark("pack", "measured", "--json").out)
    verified = json.loads(trainmark("verify", "measured.trainmark", "--json").out)
    assert packed["uuid"] == verified["uuid"] and len(packed["sha256"]) == 64
    assert verified["verified"] and verified["signature"]["state"] == "unsigned"
    assert [trial["outcome"] for trial in verified["trials"]].count("ok") == 3


def test_a_run_that_is_not_there_ends_with_2(trainmark, measured):
    done = trainmark("pack", "other")
    assert done.code == 2 and "there is no run 'other'" in done.err
