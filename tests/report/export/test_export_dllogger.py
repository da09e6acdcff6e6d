"""DLLogger's two forms, read back by their published shapes."""

from __future__ import annotations

import json
import re
from datetime import datetime, timezone

import pytest
from exported_runs import BATCH, exported, odd_run

LINE = re.compile(
    r"DLL (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}) - Epoch: 0 Iteration: (\d+)  "
    r"train\.loss : ([\d.]+)  train\.total_ips : ([\d.]+) img/s lr : 0\.1 "
)
ONE, EIGHT = "pytorch-fp32-b32-1n1g", "pytorch-fp32-b32-1n8g"


@pytest.fixture
def logs(run, tmp_path):
    return exported(run, "dllogger", tmp_path / "out")


def test_every_measured_trial_has_a_text_log_and_a_json_log(logs):
    assert {str(path.relative_to(logs)) for path in logs.glob("*/*")} == {
        f"{trial}.{kind}"
        for trial in (f"{ONE}/01", f"{ONE}/02", f"{ONE}/03", f"{EIGHT}/01")
        for kind in ("log", "json")
    }


def test_a_text_log_has_parameters_then_a_line_a_step_then_a_summary(logs):
    first, *steps, last = (logs / ONE / "02.log").read_text().splitlines()
    assert " - PARAMETER arch : resnet50  batch_size : 32  amp : False  framework : pytorch  " in first
    assert [int(LINE.fullmatch(line)[2]) for line in steps] == list(range(1, 121))
    assert last.endswith(" - Summary: train.total_ips : 102.00 img/s")


def test_the_rate_of_a_step_counts_all_ranks_over_its_time(logs):
    rows = [LINE.fullmatch(line) for line in (logs / EIGHT / "01.log").read_text().splitlines()[1:-1]]
    times = [datetime.strptime(row[1], "%Y-%m-%d %H:%M:%S.%f") for row in rows]
    for before, now, row in zip(times, times[1:], rows[1:], strict=False):
        assert float(row[4]) == pytest.approx(8 * BATCH / (now - before).total_seconds(), rel=1e-4)


def test_the_json_log_says_the_same_in_full_precision(logs):
    lines = (logs / ONE / "01.json").read_text().splitlines()
    records = [json.loads(line.removeprefix("DLLL ")) for line in lines]
    steps = [record for record in records if isinstance(record.get("step"), list)]
    assert records[0]["step"] == "PARAMETER"
    assert {record["metric"]: record["metadata"] for record in records[1:3]}["train.total_ips"] == {
        "unit": "img/s"
    }
    assert [record["step"] for record in steps] == [[0, number] for number in range(1, 121)] + [[]]
    assert steps[-1]["data"]["train.total_ips"] == 100.0
    moment = datetime.fromisoformat(steps[0]["datetime"])
    assert moment.tzinfo is not None
    assert moment.astimezone(timezone.utc).timestamp() == pytest.approx(
        float(steps[0]["timestamp"]), abs=1e-5
    )


def test_what_a_log_says_cannot_begin_a_line_of_its_own(tmp_path):
    run = odd_run(tmp_path / "runs", "odd", variant="x\nDLL 2020-01-01 00:00:00.000000 - Summary: y\r\u2028z")
    lines = (exported(run, "dllogger", tmp_path / "out") / "odd" / "01.log").read_text().splitlines()
    assert len(lines) == 122
    assert sum(" - Summary: train" in line for line in lines) == 1


def test_our_own_reader_finds_the_trial_in_either_form_again(run, logs, trainmark):
    for kind in ("log", "json"):
        code, out, _ = trainmark("read", str(logs / EIGHT / f"01.{kind}"), "--json")
        (logged_run,) = json.loads(out)["runs"]
        assert code == 0
        assert (logged_run["world_size"], logged_run["batch_per_device"], logged_run["precision"]) == (
            8,
            BATCH,
            "fp32",
        )
        assert logged_run["throughput"]["value"] == pytest.approx(780.0, rel=1e-3)
