"""Tables, numbers and heads as people write them."""

import pytest
from report_texts import codes

from trainmark.audit.grid import all_series
from trainmark.audit.report import parse_report
from trainmark.audit.terms import devices_in, parse_duration, parse_number, role_of, uses_decimal_comma


@pytest.mark.parametrize(
    ("text", "value", "decimals"),
    [
        ("148,720", 148720, 0),
        ("1149.207img/s", 1149.207, 3),
        ("１,234.50", 1234.5, 2),
        ("**7.5x**", 7.5, 1),
        ("92.3 %", 92.3, 1),
        ("381,46", 381.46, 2),
        ("1.234,5", 1234.5, 1),
        ("383.7 ± 2.1", 383.7, 1),
        ("-3.5 %", -3.5, 1),
    ],
)
def test_a_number_is_read_as_it_is_written(text, value, decimals):
    number = parse_number(text)
    assert (number.value, number.decimals) == (value, decimals)


def test_a_printed_number_stands_for_all_that_are_rounded_or_cut_to_it():
    number = parse_number("7.5")
    assert (number.low, number.high) == (7.45, 7.6)


@pytest.mark.parametrize(
    ("text", "seconds", "digit"),
    [
        ("1h02min", 3720, 60),
        ("20:04:48", 72288, 1),
        ("33 min", 1980, 60),
        ("3.5 hours", 12600, 360),
        ("2小时", 7200, 3600),
        ("350 ms", 0.35, 0.001),
    ],
)
def test_a_duration_is_read_in_seconds_with_its_last_digit(text, seconds, digit):
    number = parse_duration(text)
    assert (number.value, number.unit) == (pytest.approx(seconds), pytest.approx(digit))


@pytest.mark.parametrize("text", ["7.5", "1:2", "A100", "5 apples", "10m/s", ""])
def test_what_is_no_duration_is_none(text):
    assert parse_duration(text) is None


@pytest.mark.parametrize("text", ["", "-", "n/a", "1n8g", "10.2.89", "3 to 5", "20.03-py3", "V100"])
def test_what_is_no_number_is_none(text):
    assert parse_number(text) is None


def test_a_comma_groups_thousands_unless_the_table_uses_it_for_decimals():
    assert parse_number("1,149").value == 1149
    assert parse_number("1,149", uses_decimal_comma(["381,46", "1,149"])).value == 1.149


@pytest.mark.parametrize(
    ("head", "role"),
    [
        ("node_num", "nodes"),
        ("gpu_num_per_node", "devices_per_node"),
        ("gpus/nodes", "devices_per_node"),
        ("gpu num", "devices"),
        ("卡数", "devices"),
        ("samples/s(PyTorch)", "throughput"),
        ("吞吐(images/sec)", "throughput"),
        ("Speedup", "speedup"),
        ("加速比", "speedup"),
        ("Time2train(sec)", "time_to_train"),
        ("准确率(%)", "accuracy"),
        ("bsz/gpu", "batch"),
        ("GPU Memory Usage", "memory"),
        ("Throughput - mixed precision [mol/ms]", "throughput"),
        ("TPS/GPU", "throughput"),
        ("Throughput (T/s)", "throughput"),
        ("Weak scaling - TF32", "speedup"),
        ("Time to train speedup (FP32 to mixed precision)", "speedup"),
        ("Nodes", "nodes"),
        ("#-GPUs", "devices"),
        ("MFU", "mfu"),
        ("Achieved teraFLOP/s per GPU", "tflops"),
        ("GlobalBatchSize (T)", "global_batch_tokens"),
        ("GBS", "global_batch"),
        ("混合精度", None),
        ("Feature", None),
    ],
)
def test_a_head_in_either_language_has_its_role(head, role):
    assert role_of(head) == role


@pytest.mark.parametrize(
    ("text", "devices"),
    [
        ("1n8g", 8),
        ("16n8g", 128),
        ("4机32卡", 32),
        ("8卡", 8),
        ("8 GPUs", 8),
        ("GPU=8,BS=96", 8),
        ("fast", None),
    ],
)
def test_a_topology_is_read_from_its_name(text, devices):
    assert devices_in(text) == devices


TABLES = {
    "plain": "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n",
    "a blank line after each row": "| a | b |\n\n|---|---|\n\n| 1 | 2 |\n\n| 3 | 4 |\n",
    "loose": "a | b\n1 | 2\n3 | 4\n",
    "in a code block": "```\n| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n```\n",
    "quoted": "> | a | b |\n> |---|---|\n> | 1 | 2 |\n> | 3 | 4 |\n",
    "html in markdown": "# x\n<table><tr><th>a</th><th>b</th></tr><tr><td>1<td>2<tr><td>3<td>4</table>\n",
    "csv": "a,b\n1,2\n3,4\n",
}


@pytest.mark.parametrize("text", TABLES.values(), ids=TABLES.keys())
def test_a_table_is_found_in_every_writing(text):
    (table,) = parse_report(text, "x").tables
    assert [[cell.text for cell in row] for row in (table.head, *table.rows)] == [
        ["a", "b"],
        ["1", "2"],
        ["3", "4"],
    ]


def test_a_cell_knows_its_line_and_its_table_the_headings_above():
    table = parse_report("# One\n\n## Two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n", "x.md").tables[0]
    assert (table.rows[0][1].line, table.headings) == (7, ("One", "Two"))


def test_cells_that_span_rows_and_columns_fill_their_places():
    page = (
        "<table><tr><th rowspan=2>gpus</th><th colspan=2>FP32</th></tr>"
        "<tr><td>samples/s</td><td>speedup</td></tr><tr><td>1</td><td>400</td><td>1</td></tr></table>"
    )
    (table,) = parse_report(page, "x.html").tables
    assert [cell.text for cell in table.head] == ["gpus", "FP32 samples/s", "FP32 speedup"]
    assert [cell.text for cell in table.rows[0]] == ["1", "400", "1"]


def test_heads_that_span_blank_cells_are_joined_with_the_row_below():
    text = "|  |  | FP16 latency (ms) |  | speed up |\n|---|---|---|---|---|\n| BS | s | 90% | Avg | Avg |\n"
    (table,) = parse_report(text + "| 1 | 2.0 | 32.4 | 32.3 | 1.03 |\n", "x.md").tables
    assert [cell.text for cell in table.head] == [
        "BS", "s", "FP16 latency (ms) 90%", "FP16 latency (ms) Avg", "speed up Avg"
    ]  # fmt: skip


def test_devices_beside_nodes_count_one_node_where_more_nodes_do_not_raise_them():
    head = "| nodes | gpus | samples/s |\n|---|---|---|\n"
    per_node = parse_report(head + "| 1 | 8 | 100 |\n| 2 | 8 | 190 |\n", "x.md")
    in_all = parse_report(head + "| 1 | 8 | 100 |\n| 2 | 16 | 190 |\n", "x.md")
    for report in (per_node, in_all):
        assert [row.devices for row in all_series(report)[0].rows] == [8, 16]


def test_a_speedup_of_one_precision_over_the_other_is_not_taken_for_scaling():
    head = "| GPUs | Throughput - FP32 | Throughput - AMP | Throughput speedup (FP32 to mixed precision) |\n"
    assert codes(head + "|---|---|---|---|\n| 1 | 367 | 1200 | 3.27 |\n| 8 | 2855 | 8322 | 2.91 |\n") == []


def test_speedups_of_time_to_train_are_as_right_as_those_of_throughput():
    head = (
        "| gpus | time to train (s) | images/s | speedup |\n|---|---|---|---|\n| 1 | 137335 | 859.24 | 1 |\n"
    )
    assert (
        codes(head + "| 8 | 17501 | 6244.87 | 7.85 |\n")
        == codes(head + "| 8 | 17501 | 6244.87 | 7.27 |\n")
        == []
    )


def test_series_of_two_batches_in_one_table_have_each_their_own_baseline():
    head = "| gpus | batch | samples/s | speedup |\n|---|---|---|---|\n"
    small = "| 1 | 128 | 383.76 | 1 |\n| 8 | 128 | 2942.32 | 7.67 |\n"
    large = "| 1 | 160 | 382.32 | 1 |\n| 8 | 160 | 3016.43 | 7.89 |\n"
    assert codes(head + small + large) == []
