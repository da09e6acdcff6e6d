"""Columns of speed-ups bound to what they compare: consistent tables are silent, a wrong cell is named."""

import pytest
from report_texts import codes, findings, planted

PRECISIONS = """\
# Training performance

| GPUs | Batch size / GPU | Throughput - TF32 | Throughput - mixed precision \
| Throughput speedup (TF32 - mixed precision) | Weak scaling - TF32 | Weak scaling - mixed precision |
|---|---|---|---|---|---|---|
| 1 | 32 | 100.00 | 160.00 | 1.60 | 1.00 | 1.00 |
| 1 | 64 | 120.00 | 210.00 | 1.75 | 1.00 | 1.00 |
| 8 | 32 | 760.00 | 1184.00 | 1.56 | 7.60 | 7.40 |
| 8 | 64 | 930.00 | 1512.00 | 1.63 | 7.75 | 7.20 |
"""
NODES = """\
| Nodes | Sequence Length | Throughput - TF32 | Throughput - BF16 | Weak scaling - TF32 \
| Weak scaling - BF16 |
|---|---|---|---|---|---|
| 1 | 128 | 1500.0 | 2500.0 | 1 | 1 |
| 20 | 128 | 29400.0 | 48500.0 | 19.60 | 19.40 |
| 1 | 512 | 300.0 | 540.0 | 1 | 1 |
| 20 | 512 | 5820.0 | 10260.0 | 19.40 | 19.00 |
"""
TIMES = """\
| GPUs | Time to train - FP32 | Time to train - mixed precision \
| Time to train speedup (FP32 to mixed precision) |
|---|---|---|---|
| 1 | 20:04:48 | 07:25:27 | 270% |
| 8 | 2h35min | 1h00min | 258% |
"""
LONG = """\
| GPUs | Precision | Time to train [h] | Time to train speedup |
|---|---|---|---|
| 8 | TF32 | 4.81 | - |
| 8 | AMP | 3.77 | 1.28 |
| 16 | TF32 | 2.50 | - |
| 16 | AMP | 1.90 | 1.32 |
| 32 | TF32 | 1.30 | - |
| 32 | AMP | 1.00 | 1.30 |
"""
OPTION = """\
| GPUs | XLA | Throughput - FP32 | Throughput - AMP |
|---|---|---|---|
| 1 | OFF | 1000.0 | 1500.0 |
| 1 | ON | 1200.0 | 1950.0 |
| 8 | OFF | 7600.0 | 11000.0 |
| 8 | ON | 9500.0 | 13200.0 |

Speedup of turning XLA on:

| GPUs | Precision | Speedup |
|---|---|---|
| 1 | FP32 | 1.200 |
| 1 | AMP | 1.300 |
| 8 | FP32 | 1.250 |
| 8 | AMP | 1.200 |
"""
SIDE_BY_SIDE = """\
| Quantization | Vanilla tokens/sec | Async tokens/sec | Async speedup |
|---|---|---|---|
| none | 597.3 | 652.4 | 1.09 |
| tensorwise | 809.8 | 942.4 | 1.16 |
| rowwise | 599.6 | 624.8 | 1.04 |
"""
CUT_OFF = """\
| GPUs | images/s | speedup |
|---|---|---|
| 1 | 147 | 1.00 |
| 4 | 587 | 3.97 |
| 8 | 1133 | 7.65 |
"""
BARE = """\
| Model | GPUs | TF32 | Mixed Precision | Throughput speedup (TF32 to mixed precision) | TF32 Strong Scaling |
|---|---|---|---|---|---|
| b0 | 1 | 1000 img/s | 2480 img/s | 2.48 x | 1.0 x |
| b0 | 8 | 7800 img/s | 17940 img/s | 2.3 x | 7.8 x |
"""
STRONG = """\
| Batch size / GPU | GPUs | Throughput - FP32 | Strong scaling - FP32 |
|---|---|---|---|
| 32 | 1 | 6522.37 | 1.00 |
| 64 | 1 | 7596.32 | 1.00 |
| 32 | 4 | 23660.14 | 3.11 |
| 16 | 8 | 32175.41 | 4.24 |
"""
NEXT_TABLE = """\
FP16

| Sequence Length | Batch Size | Throughput (seq/sec) | Throughput speedup (FP32 to mixed precision) |
|---|---|---|---|
| 128 | 1 | 150.00 | 1.50 |
| 128 | 8 | 705.00 | 1.41 |
| 384 | 1 | 120.00 | 1.20 |
| 384 | 8 | 340.00 | 1.36 |

FP32

| Sequence Length | Batch Size | Throughput (seq/sec) |
|---|---|---|
| 128 | 1 | 100.00 |
| 128 | 8 | 500.00 |
| 384 | 1 | 100.00 |
| 384 | 8 | 250.00 |
"""
NAMED_ROW = """\
| Method | Median tokens/s | Speedup over BF16 |
|---|---|---|
| None (bfloat16) | 8307.5 | - |
| mxfp8 | 9969.0 | +20.0% |
| rceil | 9642.0 | +16.1% |
| tensorwise | 10417.0 | +25.4% |
"""
NAMED_COLUMNS = """\
| Batch Size | TensorRT (ms) | PyTorch (ms) | ONNX (ms) | TensorRT/PyTorch Speedup | TensorRT/ONNX Speedup |
|---|---|---|---|---|---|
| 1 | 23.61 | 25.06 | 31.84 | 1.06 | 1.35 |
| 2 | 24.56 | 25.11 | 37.54 | 1.02 | 1.53 |
| 4 | 25.90 | 31.00 | 37.20 | 1.20 | 1.44 |
"""
TWINS = """\
| Framework | FP32 throughput (img/s) | FP32 speedup | AMP throughput (img/s) | AMP speedup |
|---|---|---|---|---|
| [one](./one) | [12411.97](./one) | 31.21 | 33141.02 | 22.50 |
| two | 11331.93 | 28.89 | 30713.68 | 22.03 |
"""
BASE = """\
| GPUs | Loader | Throughput [img/s] | Speed Up |
|---|---|---|---|
| 1 | TF | 25.97 | --- |
| 8 | TF | 128.08 | 1x (base) |
| 8 | DALI | 208.38 | 1.6x |
"""
CONSISTENT = {
    "heads of a bare precision": BARE,
    "strong scaling from the best row": STRONG,
    "the other precision in the next table": NEXT_TABLE,
    "over a row by its name": NAMED_ROW,
    "over a column by its name": NAMED_COLUMNS,
    "each precision scales by itself": TWINS,
    "a base that is not one device": BASE,
    "two precisions, two batches": PRECISIONS,
    "nodes": NODES,
    "times in three writings": TIMES,
    "a row for each precision": LONG,
    "an option on and off": OPTION,
    "two columns of whatever kind": SIDE_BY_SIDE,
    "digits cut off": CUT_OFF,
}


@pytest.mark.parametrize("text", CONSISTENT.values(), ids=CONSISTENT.keys())
def test_a_consistent_table_is_silent(text):
    assert codes(text) == []


@pytest.mark.parametrize(
    ("text", "right", "wrong", "derived", "line"),
    [
        (PRECISIONS, "| 1.56 |", "| 1.76 |", "1.56", 7),
        (PRECISIONS, "| 1.60 | 1.00 |", "| 1.06 | 1.00 |", "1.60", 5),
        (PRECISIONS, "| 7.75 |", "| 7.57 |", "7.75", 8),
        (PRECISIONS, "| 7.20 |", "| 9.45 |", "7.20", 8),
        (NODES, "| 19.40 |\n| 1 ", "| 14.90 |\n| 1 ", "19.40", 4),
        (NODES, "| 19.00 |", "| 18.00 |", "19.00", 6),
        (TIMES, "270%", "290%", "2.70", 3),
        (LONG, "| 1.32 |", "| 1.52 |", "1.32", 6),
        (OPTION, "| AMP | 1.200 |", "| AMP | 1.136 |", "1.200", 15),
        (SIDE_BY_SIDE, "1.16", "1.61", "1.16", 4),
        (CUT_OFF, "7.65", "7.55", "7.71", 5),
        (PRECISIONS.replace("TF32", "FP 32"), "| 7.75 |", "| 7.57 |", "7.75", 8),
        (BARE, "2.48 x", "2.84 x", "2.48", 3),
        (BARE, "7.8 x", "8.7 x", "7.80", 4),
        (STRONG, "| 4.24 |", "| 4.42 |", "4.24", 6),
        (NEXT_TABLE, "| 1.41 |", "| 1.14 |", "1.41", 6),
        (NAMED_ROW, "+25.4%", "+52.4%", "1.25", 6),
        (NAMED_COLUMNS, "1.20", "2.10", "1.20", 5),
    ],
)
def test_a_ratio_that_does_not_follow_from_its_table_is_named(text, right, wrong, derived, line):
    (finding,) = findings(planted(text, right, wrong))
    assert (finding.code, finding.derived, finding.where) == (
        "speedup-mismatch",
        derived,
        f"report.md:{line}",
    )


def test_a_difference_below_a_quarter_of_a_percent_is_left_alone():
    head = (
        "| GPUs | Time to train - FP32 | Time to train - AMP | Speedup (FP32 to AMP) |\n|---|---|---|---|\n"
    )
    assert codes(head + "| 8 | 1:40:00 | 1:00:00 | 167.00% |\n") == []
    assert codes(head + "| 8 | 1:40:00 | 1:00:00 | 169.00% |\n") == ["speedup-mismatch"]


def test_two_columns_in_each_others_place_are_one_finding_a_row():
    text = planted(PRECISIONS, "| 7.60 | 7.40 |", "| 7.40 | 7.60 |")
    (finding,) = findings(text)
    assert (finding.claimed, finding.derived) == ("7.40 and 7.60", "7.60 and 7.40")
    assert "exchanged" in finding.message


def test_a_column_the_wrong_way_round_is_one_finding():
    head = "| GPUs | Throughput - FP32 | Throughput - AMP | Speedup (FP32 to AMP) |\n|---|---|---|---|\n"
    (finding,) = findings(head + "| 1 | 10.42M | 21.84M | 0.48 |\n| 8 | 60.03M | 95.95M | 0.63 |\n")
    assert (finding.claimed, finding.derived, "wrong way round" in finding.message) == ("0.48", "2.10", True)


def test_speedups_that_all_start_from_another_figure_are_one_finding():
    head = "| GPUs | images/s | speedup |\n|---|---|---|\n| 1 | 400.0 | 1.00 |\n"
    text = head + "| 2 | 780.0 | 2.05 |\n| 4 | 1540.0 | 4.05 |\n| 8 | 3040.0 | 8.00 |\n"
    (finding,) = findings(text)
    assert (finding.code, finding.where) == ("speedup-mismatch", "report.md:4")


def test_a_speedup_of_precision_option_or_generation_is_never_scaling():
    tables = [
        "| GPUs | Time to train - FP32 | Time to train - mixed precision | Speedup |\n|---|---|---|---|\n"
        "| 1 | 8.7 | 2.9 | 3.00 |\n| 8 | 1.2 | 0.4 | 3.00 |\n",
        "| GPUs | XLA | Precision | Speedup |\n|---|---|---|---|\n"
        "| 1 | OFF | AMP | 1.5 |\n| 1 | ON | AMP | 2.8 |\n",
        "| GPUs | Speedup A100 over V100 |\n|---|---|\n| 1 | 2.4 |\n| 8 | 2.5 |\n",
    ]
    assert [codes(table) for table in tables] == [[], [], []]


def test_scaling_a_little_past_linear_is_a_note_far_past_it_a_warning():
    head = "| gpus | samples/s |\n|---|---|\n| 1 | 400.0 |\n"
    severities = [
        [finding.severity.value for finding in findings(f"{head}| 8 | {rate} |\n")]
        for rate in (3230.0, 3500.0, 4500.0)
    ]
    assert severities == [[], ["note"], ["warning"]]


def test_a_table_may_take_the_average_or_the_median_of_a_printed_result():
    printed = (
        "```\n{'rn50': {'1n1g': {'average_speed': 100.5, 'median_speed': 100.1},\n"
        "'1n4g': {'average_speed': 390.5, 'median_speed': 391.0},\n"
        "'1n8g': {'average_speed': 770.5, 'median_speed': 771.0},\n"
        "'2n8g': {'average_speed': 1500.5, 'median_speed': 1502.0}}}\n```\n\n"
    )
    table = "| gpu num | samples/s |\n|---|---|\n| 1 | 100.5 |\n| 4 | 391.0 |\n| 8 | 770.5 |\n| 16 | {} |\n"
    assert codes(printed + table.format("1502.0")) == []
    assert codes(printed + table.format("1520.0")) == ["two-values"]


def test_runs_of_two_dated_folders_are_not_runs_of_one():
    runs = "".join(
        f"logs/{day}/1n1g/rn50_b128_fp32_1.log {{1: {rate}}}\n"
        for day, rate in (("0801", 380.0), ("0822", 395.0))
    )
    assert codes(f"```\n{runs}{{'rn50': {{'1n1g': {{'average_speed': 395.0}}}}}}\n```\n") == []


def test_figures_of_two_devices_are_not_two_values_of_one():
    table = "| 卡数 | FP32 | AMP |\n|---|---|---|\n| 1 | 365.1 | 1200.2 |\n| 8 | 2900.3 | 9400.4 |\n"
    table += "| 32 | {} | 36000.1 |\n"
    text = "## 吞吐\n\n- V100 上训练吞吐(images/s)\n\n{}\n- {} 上训练吞吐(images/s)\n\n{}"
    assert codes(text.format(table.format(11000.1), "A100", table.format(11400.1))) == []
    assert codes(text.format(table.format(11000.1), "V100", table.format(11400.1))) == ["two-values"]


def test_the_physical_limit_needs_the_model_and_the_size():
    table = "\n\nV100, FP32, ImageNet\n\n| gpus | samples/s |\n|---|---|\n| 1 | 900.0 |\n| 8 | 7000.0 |\n"
    assert codes("# ResNet-50 training" + table) == ["past-physical-limit"] * 2
    for title in ("# InsightFace with ResNet-50", "# Training", "# ResNet-50 inference"):
        assert codes(title + table) == []
    assert codes("# ResNet-50 training" + table.replace("ImageNet", "images of 64 × 64")) == []


def test_the_memory_of_a_device_is_held_against_one_named_beside_it():
    text = (
        "# Tuning\n\nAlso tried on an RTX 3090.\n\n## {}\n\n| settings | Training Memory | Training Time |\n"
    )
    text += "|---|---|---|\n| default | 26.92 GB | 1.34 min |\n"
    assert codes(text.format("Results")) == []
    assert codes(text.format("Results on RTX 3090")) == ["past-physical-limit"]


def test_time_to_train_is_held_against_imagenet_for_resnet50_alone():
    table = "\n\n| Time2train(sec) | images/sec | epochs |\n|---|---|---|\n| 23711 | 296.8 | 50 |\n"
    assert codes("# ResNet50 training" + table) == ["time-throughput-mismatch"]
    assert codes("# TSM with ResNet50" + table) == []


def test_a_heading_and_the_sentence_below_name_one_device():
    text = (
        "## Training: DGX A100 (8x A100 {}GB)\n\nOur results were obtained on a DGX A100 with 8x A100 80GB.\n"
    )
    assert codes(text.format(80)) == []
    assert codes(text.format(40)) == ["heading-mismatch"]
    assert codes(
        text.format(80).replace("with 8x A100 80GB", "with 16x V100 32GB").replace("a DGX A100 ", "")
    ) == ["heading-mismatch"]


def test_a_product_in_the_text_has_to_multiply():
    assert codes("6 * 124e6 * 10e9 = 7.44e18 operations\n18,865 * 300ms = 94.3 min\n4 × 8 = 32 GPUs\n") == []
    assert codes("about (1 + 2) * 3 = 7 and a2 * 3 = 9\n") == []
    (finding,) = findings("# Model\n\n6 * 1558e6 * 32e9 = 6.966e20 operations\n")
    assert (finding.code, finding.claimed, finding.derived) == ("product-mismatch", "6.966e20", "2.991e+20")


def test_the_time_of_a_step_is_the_one_that_the_sum_takes():
    text = "8X H100, steps in {}s/iter\ntraining time 32,000 steps * 2.7s => 24 hours\n"
    assert codes(text.format("2.70")) == []
    assert codes(text.format("2.80")) == ["step-time-mismatch"]
