"""DLPerf's folder, read by DLPerf's rule as its script applies it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import datetime

import pytest
from exported_runs import add_events, exported, odd_run
from fabricated_runs import fabricate, keep, record

from trainmark.pages.export.export import export

LINE = re.compile(r"^DLL (\S+ \S+) - .*Iteration: (.*)  train.loss :")
SERIES = "pytorch_rn50_b32_fp32"


def their_speed(log, warmup=20, train=120):
    """The `_time` rule for NVIDIA's PyTorch ResNet-50; 0 where the log has too few lines, as theirs."""
    nodes, cards = re.fullmatch(r"(\d+)n(\d+)g", log.parent.name).groups()
    batch = int(log.stem.split("_")[1][1:])
    matches = (LINE.match(line) for line in log.read_text().splitlines())
    times = [line[1] for line in matches if line and int(line[2]) > 5]
    if len(times) < train:
        return 0
    first, last = (datetime.strptime(times[n - 1], "%Y-%m-%d %H:%M:%S.%f") for n in (warmup, train))
    return int(nodes) * int(cards) * batch * (train - warmup) / (last - first).total_seconds()


def test_the_folder_is_laid_out_and_named_as_theirs(run, tmp_path):
    out = exported(run, "dlperf", tmp_path / "out")
    assert {str(path.relative_to(out)) for path in out.rglob("*.log")} == {
        f"{SERIES}/1n1g/rn50_b32_fp32_1.log",
        f"{SERIES}/1n1g/rn50_b32_fp32_2.log",
        f"{SERIES}/1n1g/rn50_b32_fp32_3.log",
        f"{SERIES}/1n8g/rn50_b32_fp32_1.log",
    }


def test_their_rule_with_its_defaults_gives_our_figure_back(run, tmp_path):
    out = exported(run, "dlperf", tmp_path / "out") / SERIES
    speeds = {str(log.relative_to(out)): their_speed(log) for log in out.rglob("*.log")}
    ours = json.loads((out / "trainmark.json").read_text())["logs"]
    assert {log: entry["throughput"] for log, entry in ours.items()} == pytest.approx(speeds, rel=1e-6)


def test_our_reading_by_their_protocol_gives_the_medians_and_the_speed_up_back(run, tmp_path, trainmark):
    out = exported(run, "dlperf", tmp_path / "out") / SERIES
    words = ("--protocol", "dlperf-pytorch-rn50", "--warmup", "20", "--train", "120", "--json")
    code, stdout, _ = trainmark("read", str(out), *words)
    assert code == 0
    result = json.loads(stdout)["rn50"]
    assert {case: (figures["median_speed"], figures["speedup"]) for case, figures in result.items()} == {
        "1n1g": (101.0, 1.0),
        "1n8g": (780.0, 7.72),
    }


@pytest.mark.parametrize(("first", "stop"), [(5, 60), (20, 110), (57, 120), (0, 90)])
def test_another_window_comes_back_with_the_numbers_told_beside_the_logs(tmp_path, first, stop):
    run = odd_run(tmp_path / "runs", "odd")
    figure = run.path / "trials" / "odd" / "01" / "figure.json"
    document = json.loads(figure.read_text())
    document["figure"]["window"] |= {"first": first, "stop": stop}
    figure.write_text(json.dumps(document))
    (out,) = exported(run, "dlperf", tmp_path / "out").glob("*/")
    rule = json.loads((out / "trainmark.json").read_text())
    (log,) = out.rglob("*.log")
    events = (run.path / "trials" / "odd" / "01" / "events" / "rank0.jsonl").read_text().splitlines()
    ends = [json.loads(line)["mono"] for line in events[1:-1]]
    counted = stop - max(first, 1)
    ours = 32 * counted / (ends[stop - 1] - ends[max(first, 1) - 1])
    assert rule["train_batches"] - rule["warmup_batches"] == counted
    assert their_speed(log, rule["warmup_batches"], rule["train_batches"]) == pytest.approx(ours, rel=1e-6)


def test_two_precisions_do_not_overwrite_each_other(tmp_path):
    run = fabricate(tmp_path / "runs", "both", {})
    for repeat, (precision, rate) in enumerate((("fp32", 100.0), ("amp", 300.0)), 1):
        trial_record = record(f"pytorch-{precision}", repeat, rate)
        trial_record = replace(trial_record, key=replace(trial_record.key, precision=precision))
        add_events(keep(run, trial_record), trial_record)
    out = exported(run, "dlperf", tmp_path / "out")
    assert {path.name for path in out.iterdir() if path.is_dir()} == {
        "pytorch_rn50_b32_fp32",
        "pytorch_rn50_b32_amp",
    }


def test_a_step_without_loss_or_duration_still_has_its_line(tmp_path):
    run = odd_run(tmp_path / "runs", "odd")
    events = run.path / "trials" / "odd" / "01" / "events" / "rank0.jsonl"
    lines = [json.loads(line) for line in events.read_text().splitlines()]
    lines[51] |= {"mono": lines[50]["mono"], "wall": lines[50]["wall"], "loss": None}
    events.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (log,) = exported(run, "dlperf", tmp_path / "out").rglob("*.log")
    assert "  train.loss : nan  train.total_ips : inf img/s\n" in log.read_text()
    assert their_speed(log) == pytest.approx(100.0, rel=1e-6)


def test_a_trial_whose_batches_differ_is_left_out_with_the_reason(run, tmp_path):
    events = run.path / "trials" / "pytorch-fp32-b32-1n1g" / "01" / "events" / "rank0.jsonl"
    lines = [json.loads(line) for line in events.read_text().splitlines()]
    lines[71]["samples"] = 16
    events.write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = export(run, "dlperf", tmp_path / "out", "x")
    assert [trial for trial, _ in done.skipped] == ["pytorch-fp32-b32-1n8g/02", "pytorch-fp32-b32-1n1g/01"]
    assert done.skipped[1][1].startswith("its steps do not all train on")


def test_names_that_would_break_their_splitting_or_leave_the_folder_do_not(tmp_path):
    run = odd_run(tmp_path / "runs", "odd", workload="../my_net", precision="f/p_16", framework="..")
    out = exported(run, "dlperf", tmp_path / "out")
    (log,) = out.rglob("*.log")
    assert log.name == "my-net_b32_f-p-16_1.log"
    assert len(log.relative_to(out).parts) == 3
