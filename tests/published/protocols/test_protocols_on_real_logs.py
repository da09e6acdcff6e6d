"""The rules over logs that other people published, against the numbers that they published from them."""

import re
import shutil
from pathlib import Path

import pytest

from trainmark.audit import protocols

SHARED = Path(__file__).resolve().parents[3].parent / "shared"
LOGS = SHARED / "logs"
pytestmark = pytest.mark.skipif(not LOGS.is_dir(), reason="the published logs are not beside this checkout")


def published(prefix: str) -> str:
    return next((SHARED / "seeds").glob(f"{prefix}*.txt")).read_text(encoding="utf-8")


def codes(reading):
    return {doubt.code for doubt in reading.doubts}


# PerformanceReport, ResNet50V1.5/OtherReports/TensorFlow/README.md; it cuts digits off where it should round.
TENSORFLOW = {
    "tf_gpu1_amp_bs128": 954.940,
    "tf_gpu1_amp_bs256": 978.827,
    "tf_gpu8_fp32_bs128": 3105.256,
    "tf_gpu8_amp_bs128": 7829.922,
}


@pytest.mark.parametrize(("log", "figure"), TENSORFLOW.items())
def test_the_tensorflow_table_of_performance_report(log, figure):
    (conclusion,) = protocols.apply(
        "ngc-tensorflow-summary", LOGS / "tensorflow_dllogger" / f"{log}.txt"
    ).values()
    assert int(1000 * conclusion["train_throughput"]) / 1000 == figure


def test_the_pytorch_table_of_performance_report():
    """The one cell of its first version whose log of that version is kept: AMP, batch 256, 8 devices."""
    log = LOGS / "pytorch_dllogger" / "pytorch_gpu8_amp_bs256__c85040b6.txt"
    (conclusion,) = protocols.apply("ngc-pytorch-summary", log).values()
    assert conclusion["train.total_ips"] == 6007.61


def test_the_mxnet_table_of_performance_report():
    row = re.findall(r"^\|([18]) \|.*\| ([\d.]+) \|$", published("000"), re.M)
    log = LOGS / "mxnet_dllogger" / "mxnet_gpu1_gpu8_amp_bs256__b517482c.txt"
    (conclusion,) = protocols.apply("ngc-mxnet", log).values()
    assert {devices: conclusion[devices] for devices, _ in row} == {key: float(value) for key, value in row}
    assert len(row) == 2


def test_ai_rank_published_the_whole_run_as_its_time_to_train():
    """PyTorch's table: 137,335 s and 5,237 s; the target was reached earlier."""
    reading = protocols.read("ai-rank", LOGS / "airank")
    rows = reading.table["resnet50"]
    assert {devices: round(row["total_use_time"]) for devices, row in rows.items()} == {
        "1": 137335,
        "32": 5237,
    }
    assert rows["1"]["time2train"] < 130_000
    assert (rows["32"]["throughput"], rows["32"]["accuracy"]) == (22710.21, 75.90)
    assert {"not-conforming", "whole-run-is-longer"} <= codes(reading)


def test_the_oneflow_example_gives_the_average_that_its_report_asks_for(tmp_path):
    lines = [line for line in published("004").splitlines() if line.startswith("train: epoch")]
    (tmp_path / "oneflow.log").write_text("\n".join(lines), encoding="utf-8")
    rates = [float(line.rsplit(" ", 1)[1]) for line in lines]
    (row,) = protocols.apply("oneflow-report-2020", tmp_path)["rows"]
    assert row["Throughput"] == round(sum(rates[1:]) / 9, 3) == 385.096


def test_the_oneflow_example_under_the_dlperf_rule_is_a_third_of_that(tmp_path):
    header = "num_nodes = 1\ngpu_num_per_node = 1\nbatch_size_per_device = 128\n"
    (tmp_path / "oneflow.log").write_text(header + published("004"), encoding="utf-8")
    reading = protocols.read("dlperf-oneflow", tmp_path)
    assert reading.table["rows"][0]["throughput"] == 131.58
    assert codes(reading) == {"rate-taken-for-time"}


@pytest.fixture
def pytorch_folder(tmp_path):
    for case, log in (("1n1g", "pytorch_gpu1_fp32_bs128"), ("1n8g", "pytorch_gpu8_fp32_bs128")):
        (tmp_path / case).mkdir()
        shutil.copy(LOGS / "pytorch_dllogger" / f"{log}.txt", tmp_path / case / "r50_b128_fp32_1.log")
    return tmp_path


def test_logs_of_99_iterations_count_as_zero_under_the_usual_window(pytorch_folder):
    reading = protocols.read("dlperf-pytorch-rn50", pytorch_folder)
    assert {case["average_speed"] for case in reading.table["r50"].values()} == {0}
    assert reading.ours["r50"]["b128_fp32"]["1n8g"]["speedup"] == 7.78


def test_logs_of_99_iterations_give_a_figure_under_a_shorter_window(pytorch_folder):
    reading = protocols.read("dlperf-pytorch-rn50", pytorch_folder, 20, 90)
    assert reading.table["r50"]["1n1g"]["median_speed"] == 367.4
    assert reading.table["r50"]["1n8g"]["speedup"] == 7.78
    assert reading.doubts == []


def test_a_single_mlperf_run_has_its_minutes_and_no_score():
    table = protocols.apply("mlperf-olympic", LOGS / "mllog")["resnet"]
    assert table["NVIDIA, 1xNVIDIA DGX A100"] == {
        "runs": 1,
        "minutes": [39.444],
        "olympic_mean_minutes": None,
    }
    assert len(table) == 4
