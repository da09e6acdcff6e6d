"""Trainings to a target, as MLPerf and AI-Rank want them told."""

from __future__ import annotations

import json
import re

import pytest
from exported_runs import exported
from mlperf_logging.compliance_checker import mlp_compliance, mlp_parser
from trained_runs import trained_run

RESNET_RULES = "4.0.0"  # the last that know ResNet
LINE = re.compile(r"- AI-Rank-log (\d+\.\d{3}) (\w+)(?::([\d.]+))?")


def mllog(run, tmp_path):
    (log, *_) = sorted(exported(run, "mllog", tmp_path / "mllog").rglob("result_*.txt"))
    lines, errors = mlp_parser.parse_file(str(log), ruleset=RESNET_RULES)
    assert errors == []
    return log, lines


def airank(run, tmp_path):
    (log,) = exported(run, "airank", tmp_path / "airank").rglob("*.log")
    return [(float(at), name, value) for at, name, value in LINE.findall(log.read_text())]


def test_the_checker_of_mlperf_has_nothing_left_to_complain_about(tmp_path):
    log, _ = mllog(trained_run(tmp_path / "runs", "mine"), tmp_path)
    checker = mlp_compliance.make_checker("training", RESNET_RULES, quiet=False, werror=True)
    checker.check_file(str(log), f"training_{RESNET_RULES}/common.yaml")
    assert [*checker.overwritable.values(), *checker.not_overwritable] == []


def test_mlperfs_time_from_run_start_to_run_stop_is_time2train(tmp_path):
    run = trained_run(tmp_path / "runs", "mine", ranks=2)
    _, lines = mllog(run, tmp_path)
    at = {line.key: line.timestamp for line in lines}
    time2train = run.records()[0].figure.finish.time2train
    assert (at["run_stop"] - at["run_start"]) / 1000 == pytest.approx(time2train, abs=2e-3)


def test_every_evaluation_has_its_accuracy_and_epoch(tmp_path):
    _, lines = mllog(trained_run(tmp_path / "runs", "mine"), tmp_path)
    evaluations = [(line.value["metadata"]["epoch_num"], line.value["value"]) for line in lines
                   if line.key == "eval_accuracy"]  # fmt: skip
    assert evaluations == [(1, 0.2), (2, 0.4), (3, 0.6)]


@pytest.mark.parametrize(("target", "status"), [(0.5, "success"), (0.9, "aborted")])
def test_only_a_training_that_reached_its_target_is_a_success(target, status, tmp_path):
    _, lines = mllog(trained_run(tmp_path / "runs", "mine", target=target), tmp_path)
    assert lines[-1].value["metadata"]["status"] == status


def test_lines_come_in_the_order_of_time(tmp_path):
    _, lines = mllog(trained_run(tmp_path / "runs", "mine", kill=True), tmp_path)
    times = [line.timestamp for line in lines]
    assert times == sorted(times)


def test_the_log_of_ai_rank_has_every_line_that_its_rules_ask_for(tmp_path):
    lines = airank(trained_run(tmp_path / "runs", "mine"), tmp_path)
    names = [name for _, name, _ in lines]
    assert names == [
        "test_begin", "load_data", "eval_accuracy", "eval_accuracy", "eval_accuracy", "target_quality_time",
        "test_finish", "total_use_time", "avg_ips",
    ]  # fmt: skip


def test_ai_ranks_time_is_counted_from_the_start_of_the_process(tmp_path):
    run = trained_run(tmp_path / "runs", "mine")
    values = {name: value for _, name, value in airank(run, tmp_path)}
    median = sorted(record.figure.finish.airank_seconds for record in run.records())[1]
    assert float(values["target_quality_time"]) == pytest.approx(median, abs=2e-3)


def test_our_own_reading_of_ai_ranks_rules_finds_the_same_time(tmp_path, trainmark):
    run = trained_run(tmp_path / "runs", "mine")
    out = exported(run, "airank", tmp_path / "airank")
    code, stdout, _ = trainmark("read", str(out), "--protocol", "ai-rank", "--json")
    assert code == 0
    (seconds,) = re.findall(r'"time2train": ([\d.]+)', stdout)
    median = sorted(record.figure.finish.airank_seconds for record in run.records())[1]
    assert float(seconds) == pytest.approx(median, abs=2e-3)


def test_the_steps_that_a_resumption_repeats_are_exported_once(tmp_path):
    run = trained_run(tmp_path / "runs", "mine", seeds=1, kill=True)
    _, lines = mllog(run, tmp_path)
    steps = [line.value["metadata"]["step"] for line in lines if line.key == "tracked_stats"]
    assert steps == list(range(1, 31))


def test_show_leads_with_the_finish_line(tmp_path, trainmark):
    trained_run(tmp_path / "runs", "mine")
    code, out, _ = trainmark("show", "mine")
    assert code == 0
    assert "Time to train (top1=0.5)" in out
    assert "top1=0.5 in 0:29, 3 epochs, " in out


def test_show_of_one_training_has_its_clocks_and_evaluations(tmp_path, trainmark):
    trained_run(tmp_path / "runs", "mine", kill=True)
    _, out, _ = trainmark("show", "mine", "pytorch-fp32-b32-1n1g/01")
    assert re.search(r"AI-Rank's clock +1:39", out)
    assert "lost to kills 1:03" in out
    assert re.search(r"epoch 3 +top-1 60.00 %  top-5 90.00 %  after 1:32, step 30", out)


def test_the_report_of_a_run_draws_every_seed(tmp_path, trainmark):
    trained_run(tmp_path / "runs", "mine", kill=True)
    code, out, _ = trainmark("report", "mine", "--format", "json")
    finish = json.loads(out)["results"][0]["finish"]
    assert (code, finish["reached"], finish["decided"], len(finish["times"])) == (0, 3, 3, 3)
    assert [doubt["code"] for doubt in json.loads(out)["results"][0]["doubts"]].count("resumed") == 1
