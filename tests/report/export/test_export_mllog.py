"""MLPerf lines, through the parser and the compliance checker of the `mlperf-logging` package."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from exported_runs import exported, odd_run
from mlperf_logging.compliance_checker import mlp_compliance, mlp_parser

RESNET_RULES = "4.0.0"  # the last that know ResNet
ROW = re.compile(r"^\| `(\w+)` \| ((?:open|closed)[^|]*) \|", re.MULTILINE)
PAGE = Path(__file__).resolve().parents[3] / "docs" / "export.md"


@pytest.fixture
def log(run, tmp_path):
    return exported(run, "mllog", tmp_path / "out") / "pytorch-fp32-b32-1n8g" / "result_0.txt"


def parsed(log, ruleset=RESNET_RULES):
    lines, errors = mlp_parser.parse_file(str(log), ruleset=ruleset)
    assert errors == []
    return lines


def complaints(log, ruleset):
    checker = mlp_compliance.make_checker("training", ruleset, quiet=False, werror=True)
    checker.check_file(str(log), f"training_{ruleset}/common.yaml")
    return sorted([*checker.overwritable.values(), *checker.not_overwritable])


def named(complaint):
    """The key that a complaint of the checker is about."""
    return re.search(r"'(\w+)'", complaint)[1]


def test_the_package_parses_every_line(log):
    assert len(parsed(log)) == len(log.read_text().splitlines())


def test_of_the_rules_for_resnet_only_the_accuracy_is_not_met(log):
    assert complaints(log, RESNET_RULES) == [
        "Required AT_LEAST_ONE occurrence of 'eval_accuracy' but found 0"
    ]


@pytest.mark.parametrize("division", ["open", "closed"])
def test_the_page_names_exactly_the_rules_that_cannot_be_met(log, division):
    log.write_text(log.read_text().replace('"open"', f'"{division}"'))
    rules = {rule for rule, where in ROW.findall(PAGE.read_text(encoding="utf-8")) if division in where}
    assert rules == set(map(named, complaints(log, RESNET_RULES)))


def test_the_checker_sees_what_is_wrong_with_a_log_that_is_cut(log):
    log.write_text("".join(log.read_text().splitlines(keepends=True)[:-1]))
    assert "run_stop" in map(named, complaints(log, RESNET_RULES))


def test_the_block_of_the_window_carries_our_figure_and_lasts_as_long(log):
    begins, ends = ([line for line in parsed(log) if line.key == f"block_{end}"] for end in ("start", "stop"))
    warmup, window = (line.value["metadata"] for line in ends)
    assert "throughput" not in warmup
    assert window["throughput"] == 780.0
    assert window["samples_count"] - warmup["samples_count"] == 100 * 8 * 32
    seconds = (ends[1].timestamp - begins[1].timestamp) / 1000
    assert 100 * 8 * 32 / seconds == pytest.approx(780.0, rel=1e-4)


def test_every_step_is_tracked_with_the_rate_of_all_ranks_and_its_loss(log):
    stats = [line.value for line in parsed(log) if line.key == "tracked_stats"]
    assert [stat["metadata"]["step"] for stat in stats] == list(range(1, 121))
    assert stats[-1]["value"] == pytest.approx({"throughput": 780 / 1.05, "train_loss": 7 - 1.19})


def test_our_own_reader_finds_the_trial_again(log, trainmark):
    code, out, _ = trainmark("read", str(log), "--json")
    (logged_run,) = json.loads(out)["runs"]
    assert (code, logged_run["world_size"], logged_run["batch_per_device"]) == (0, 8, 32)
    assert logged_run["throughput"]["value"] == pytest.approx(780.0, rel=1e-2)


def test_a_throughput_trial_does_not_claim_mlperfs_success(log):
    stop = parsed(log)[-1]
    assert (stop.key, stop.value["metadata"]["status"]) == ("run_stop", "aborted")


def test_text_of_a_run_cannot_forge_a_line_or_lead_out_of_the_rules(tmp_path):
    run = odd_run(tmp_path / "runs", "odd", workload='../../etc/x\n:::MLLOG {"key": "run_stop"}')
    log = exported(run, "mllog", tmp_path / "out", "a\nb") / "odd" / "result_0.txt"
    values = {line.key: line.value["value"] for line in parsed(log)}
    assert values["submission_org"] == "a b"
    assert "/" not in values["submission_benchmark"]
    assert [line.key for line in parsed(log)].count("run_stop") == 1
