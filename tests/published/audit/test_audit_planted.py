"""A consistent report is silent; one planted error is found, and nothing else."""

import pytest
from report_texts import CHINESE, CONSISTENT, CSV, ENGLISH, HTML, LOG, LOGGED, TIMED, codes, findings, planted

SECOND_LOG = LOG.replace("2n8g", "4n8g").replace("--nnodes 2", "--nnodes 4").replace("size : 16", "size : 32")


@pytest.mark.parametrize("name", CONSISTENT)
def test_a_consistent_report_is_silent(name):
    assert findings(CONSISTENT[name], name) == []


@pytest.mark.parametrize(
    ("text", "right", "wrong", "code", "line"),
    [
        (ENGLISH, "| 15.36 |", "| 15.63 |", "speedup-mismatch", 11),
        (CHINESE, "| 7.80 |", "| 7.08 |", "speedup-mismatch", 39),
        (CHINESE, "'speedup': 7.8}", "'speedup': 7.9}", "speedup-mismatch", 25),
        (CHINESE, "'average_speed': 2968.9,", "'average_speed': 2986.9,", "average-mismatch", 22),
        (CHINESE, "2: 11510.0}", "2: 11501.0}", "two-values", 17),
        (CHINESE, "进行3次", "进行7次", "repeats-mismatch", 18),
        (CHINESE, "--train_batches=200", "--train_batches=120", "rule-mismatch", 5),
        (TIMED, "145,000秒", "125,000秒", "text-against-table", 7),
        (TIMED, "76.51 |", "77.51 |", "text-against-table", 7),
        (TIMED, "90个", "120个", "time-throughput-mismatch", 7),
        (TIMED, "90个", "50个", "time-throughput-mismatch", 7),
        (ENGLISH, "size=128.", "size=96.", "batch-above-maximum", 9),
        (ENGLISH, "batch size = 128", "batch size = 160", "batch-mismatch", 9),
        (LOGGED, "--nnodes 2", "--nnodes 3", "world-size-mismatch", 7),
        (LOGGED, "--mom 0.875", "--mom 0.125", "recipe-contradicted", 7),
        (LOGGED, "--prof 151", "--prof 121", "too-few-iterations", 7),
        (LOGGED, "Each figure", "TODO: each figure", "placeholder", 3),
        (HTML, "<td>7.60</td>", "<td>7.06</td>", "speedup-mismatch", 6),
        (CSV, "30.20", "32.20", "speedup-mismatch", 4),
    ],
)
def test_one_planted_error_is_found_in_its_place_and_nothing_else_is(text, right, wrong, code, line):
    report_findings = findings(planted(text, right, wrong))
    assert {finding.code for finding in report_findings} == {code}
    assert report_findings[0].where == f"report.md:{line}"


@pytest.mark.parametrize(
    ("text", "right", "wrong", "expected"),
    [
        (
            CHINESE,
            "'median_speed': 381.0,",
            "'median_speed': 381.2,",
            {"median-mismatch", "two-values"},
        ),
        (CHINESE, "取后100个", "取后10个", {"rule-mismatch", "window-too-short"}),
        (TIMED, "800.25 |", "880.25 |", {"text-against-table", "time-throughput-mismatch"}),
        (LOGGED, "size : 16", "size : 32", {"world-size-mismatch", "rate-contradicts-world-size"}),
    ],
)
def test_an_error_that_others_follow_from_brings_them_along(text, right, wrong, expected):
    assert set(codes(planted(text, right, wrong))) == expected


@pytest.mark.parametrize(
    ("rows", "code"),
    [
        ("| 1 | 400.0 |\n| 8 | 3600.0 |", "superlinear-scaling"),
        ("| 1 | 400.0 |\n| 8 | 1200.0 |", "collapsed-scaling"),
        ("| 8 | 2900.0 |\n| 16 | 2600.0 |", "throughput-falls"),
        ("| 1 | 900.0 |\n| 8 | 7000.0 |", "past-physical-limit"),
    ],
)
def test_a_figure_that_needs_explaining_is_named(rows, code):
    report = f"# ResNet-50 on ImageNet in FP32 on V100\n\n| gpus | samples/s |\n|---|---|\n{rows}\n"
    assert set(codes(report)) == {code}


def test_a_row_that_takes_its_accuracy_from_another_run_is_named_with_both_runs():
    text = planted(TIMED, "76.51 |", "76.80 |") + "\n经过250个epoch的训练，最终精度达到76.80%。\n"
    mixed_rows = [finding for finding in findings(text) if finding.code == "row-of-two-runs"]
    assert [(finding.claimed, finding.derived) for finding in mixed_rows] == [
        ("accuracy 76.80 in 145,000 s", "accuracy 76.51 in 145,000 s")
    ]


def test_a_log_shown_under_two_topologies_is_a_copy():
    assert "copied-log" in codes(LOGGED + "\n" + SECOND_LOG)


def test_a_world_size_edited_everywhere_is_still_given_away_by_the_rates():
    text = (
        LOGGED.replace("2n8g", "4n8g").replace("--nnodes 2", "--nnodes 4").replace("size : 16", "size : 32")
    )
    (finding,) = findings(text)
    assert (finding.code, finding.derived) == ("rate-contradicts-world-size", "world size 16")


def test_a_table_and_the_printed_result_that_differ_in_one_value_are_both_named():
    text = planted(CHINESE, "|32 | 11,510.00 | 30.21 |", "|32 | 11,150.00 | 29.27 |")
    (finding,) = findings(text)
    assert (finding.code, finding.claimed, finding.derived) == ("two-values", "11150.00", "11510.00")


def test_a_number_that_stands_in_two_tables_has_to_be_the_same():
    again = (
        "\n## All\n\n| gpus | samples/s |\n|---|---|\n| 1 | 380.00 |\n| 8 | 2964.00 |\n| 32 | 11746.00 |\n"
    )
    (finding,) = findings(ENGLISH + again)
    assert (finding.code, finding.claimed, finding.derived) == ("two-values", "11746.00", "11476.00")


def test_nodes_times_devices_a_node_are_the_devices():
    head = "| node num | gpus/nodes | gpu num | Throughput |\n|---|---|---|---|\n"
    assert codes(f"{head}| 1 | 8 | 8 | 2942.3 |\n| 2 | 8 | 16 | 5839.0 |\n") == []
    assert codes(f"{head}| 1 | 8 | 8 | 2942.3 |\n| 2 | 8 | 32 | 5839.0 |\n") == ["device-count-mismatch"]


def test_more_memory_than_the_device_has_is_past_its_limit():
    table = (
        "# V100-SXM2-16GB\n\n| gpu num | GPU Memory Usage | samples/s |\n|---|---|---|\n| 1 | {} | 380.1 |\n"
    )
    assert codes(table.format(15881)) == []
    assert codes(table.format(17881)) == ["past-physical-limit"]


def test_throughput_and_time_a_step_have_to_agree_in_their_units():
    head = "| gpu num | batch | samples/s | step time (ms) |\n|---|---|---|---|\n"
    assert codes(f"{head}| 1 | 128 | 380.0 | 336.8 |\n| 8 | 128 | 2964.0 | 345.5 |\n") == []
    assert codes(f"{head}| 1 | 128 | 380.0 | 336.8 |\n| 8 | 128 | 2964.0 | 0.3455 |\n") == [
        "step-time-mismatch"
    ]


def test_a_device_count_that_is_said_to_be_tested_has_a_row():
    table = "\n| 卡数 | 吞吐 |\n|---|---|\n| 1 | 380.0 |\n| 4 | 1500.0 |\n| 8 | 2960.0 |\n"
    assert codes("针对单机单卡、4 卡、8 卡进行测试。\n" + table) == []
    assert codes("针对单机单卡、2 卡、4 卡、8 卡进行测试。\n" + table) == ["missing-rows"]


def test_averages_of_a_table_of_runs_follow_from_the_runs():
    head = "| gpu num | run 1 | run 2 | run 3 | median | average |\n|---|---|---|---|---|---|\n"
    assert codes(head + "| 1 | 380.0 | 381.0 | 385.0 | 381.0 | 382.0 |\n") == []
    assert codes(head + "| 1 | 380.0 | 381.0 | 385.0 | 382.0 | 382.0 |\n") == ["median-mismatch"]


def test_a_printed_efficiency_follows_from_its_row():
    head = "| gpus | samples/s | efficiency |\n|---|---|---|\n| 1 | 400.0 | 100% |\n"
    assert codes(head + "| 8 | 3040.0 | 95.0% |\n") == []
    assert codes(head + "| 8 | 3040.0 | 98.0% |\n") == ["efficiency-mismatch"]


def test_a_perfect_accuracy_at_once_is_too_soon_unless_the_data_are_synthetic():
    lines = "iter 10, top_1: 0.000000, samples/s: 61.5\niter 80, top_1: 1.000000, samples/s: 122.5\n"
    text = "# ResNet50 on ImageNet\n\n```\n{}" + lines + "```\n"
    assert codes(text.format("")) == ["accuracy-too-soon"]
    assert codes(text.format("Loading synthetic data.\n")) == []


def test_an_empty_block_and_an_empty_row_are_named():
    text = "请参考如下脚本：\n```\n```\n\n| 卡数 | 吞吐 |\n|---|---|\n| 1 | 380.0 |\n| 32 | - |\n"
    assert codes(text) == ["empty-block", "empty-row"]
