"""The rules that are not DLPerf's extractors, on short logs of our own making."""

import json

import pytest
from protocol_logs import oneflow, place, pytorch

from trainmark.audit import protocols
from trainmark.base.errors import UserError


def codes(reading):
    return {doubt.code for doubt in reading.doubts}


def test_oneflow_divides_by_the_unix_time_between_two_steps(tmp_path):
    for devices, speed in ((1, 400.0), (8, 3000.0)):
        text = oneflow([speed] * 7, (1, devices, 128), unix=True)
        place(tmp_path, f"1n{devices}g", "resnet.log", text)
    assert protocols.apply("dlperf-oneflow", tmp_path) == {
        "rows": [
            {
                "num_nodes": 1,
                "gpu_num_per_node": devices,
                "batch_size_per_device": 128,
                "throughput": speed,
                "speedup": speedup,
            }
            for devices, speed, speedup in ((1, 400.0, 1.0), (8, 3000.0, 7.5))
        ]
    }
    assert protocols.doubts("dlperf-oneflow", tmp_path) == []


def test_oneflow_without_a_single_device_gives_a_speedup_of_zero(tmp_path):
    place(tmp_path, "1n8g", "resnet.log", oneflow([3000.0] * 7, (1, 8, 128), unix=True))
    reading = protocols.read("dlperf-oneflow", tmp_path)
    assert reading.table["rows"][0]["speedup"] == 0.0
    assert codes(reading) == {"no-baseline"}


def test_oneflow_stops_where_a_step_of_its_window_is_not_printed(tmp_path):
    place(tmp_path, "1n1g", "resnet.log", oneflow([400.0] * 4, (1, 1, 128), unix=True))
    with pytest.raises(UserError, match="no line for step 120"):
        protocols.apply("dlperf-oneflow", tmp_path)


def test_the_report_of_2020_drops_the_first_rate_and_averages_the_rest(tmp_path):
    place(tmp_path, "1n1g", "oneflow_b128_fp32_1.log", oneflow([10.0, 380.0, 390.0]))
    place(tmp_path, "2n8g", "oneflow_b128_fp32_1.log", oneflow([10.0, 5800.0, 5900.0]))
    rows = protocols.apply("oneflow-report-2020", tmp_path)["rows"]
    assert [list(row.values()) for row in rows] == [
        [1, 1, 1, 128, 385.0, 1.0],
        [2, 8, 16, 128, 5850.0, 15.19],
    ]


def test_the_report_of_2020_never_guesses_what_the_log_does_not_say(tmp_path):
    path = place(tmp_path, "logs", "oneflow.log", oneflow([10.0, 380.0, 390.0]))
    (row,) = protocols.apply("oneflow-report-2020", path)["rows"]
    assert (row["gpu num"], row["bsz/gpu"], row["Speedup"]) == (None, None, None)


SPEC = """\
- AI-Rank-log 1000.0 load_data, checksum:234584
- AI-Rank-log 1001.0 test_begin
- AI-Rank-log {first} eval_accuracy:0.70, total_epoch_cnt:1
- AI-Rank-log {second} eval_accuracy:0.761, total_epoch_cnt:2
- AI-Rank-log {third} eval_accuracy:0.77, total_epoch_cnt:3
- AI-Rank-log {third} test_finish
- AI-Rank-log {third} avg_ips:{ips}images/sec
"""


def test_ai_rank_counts_to_the_first_evaluation_that_reaches_the_target(tmp_path):
    for devices, epoch in ((1, 800), (8, 100)):
        times = {name: 1001 + epoch * number for number, name in enumerate(("first", "second", "third"), 1)}
        place(tmp_path, "resnet50/log", f"GPUx{devices}.log", SPEC.format(**times, ips=900 * devices))
    reading = protocols.read("ai-rank", tmp_path)
    assert reading.table["resnet50"]["8"] == {
        "time2train": 200.0,
        "total_use_time": 300.0,
        "throughput": 7200.0,
        "accuracy": 77.0,
        "speedup": 8.0,
    }
    assert codes(reading) == {"whole-run-is-longer"}


def test_ai_rank_gives_no_time_where_the_target_was_not_reached(tmp_path):
    text = SPEC.replace("0.761", "0.71").replace("0.77", "0.72")
    place(tmp_path, "resnet50/log", "GPUx1.log", text.format(first=2, second=3, third=4, ips=900))
    reading = protocols.read("ai-rank", tmp_path)
    assert reading.table["resnet50"]["1"]["time2train"] is None
    assert "target-not-reached" in codes(reading)


def test_ai_rank_says_which_logs_it_left_out(tmp_path):
    place(tmp_path, "resnet50/log", "GPUx1.log", SPEC.format(first=2, second=3, third=4, ips=900))
    place(tmp_path, "resnet50/log", "GPUx8.log", "loss 6.9\n")
    assert "not-read" in codes(protocols.read("ai-rank", tmp_path))


def test_ngc_pytorch_is_its_summary_and_the_clock_says_how_far_off(tmp_path):
    summary = "DLL 2020-12-16 11:32:54.606243 - Summary: train.loss : 7.2  train.total_ips : 364.26 img/s\n"
    place(tmp_path, "logs", "pytorch_gpu1_fp32_bs128.txt", pytorch(367.4, 128, 1, steps=99) + summary)
    reading = protocols.read("ngc-pytorch-summary", tmp_path)
    assert reading.table == {"pytorch_gpu1_fp32_bs128": {"train.total_ips": 364.26}}
    assert reading.ours["pytorch_gpu1_fp32_bs128"]["median_speed"] == pytest.approx(367.4, abs=0.01)
    assert codes(reading) == {"summary-off-the-clock"}


def test_ngc_pytorch_takes_the_rate_with_the_time_of_data_where_both_are_printed(tmp_path):
    rates = "train.compute_ips : 912.5 images/s train.total_ips : 905.25 images/s\n"
    place(
        tmp_path,
        "logs",
        "new.txt",
        f"DLL 2023-08-04 05:49:48.307689 - Summary: train.loss : 4.5 None {rates}",
    )
    assert protocols.apply("ngc-pytorch-summary", tmp_path) == {"new": {"train.total_ips": 905.25}}


@pytest.mark.parametrize("name", ["ngc-pytorch-summary", "ngc-tensorflow-summary", "ngc-mxnet"])
def test_a_log_that_ends_before_its_summary_has_none(tmp_path, name):
    place(tmp_path, "logs", "a_gpu1_fp32_bs128.txt", "epoch 0\n")
    reading = protocols.read(name, tmp_path)
    assert reading.table == {"a_gpu1_fp32_bs128": {}}
    assert codes(reading) == {"no-summary"}


def test_ngc_tensorflow_keeps_every_digit_that_was_printed(tmp_path):
    text = "DLL 2020-12-16 07:26:00.914848 - () train_throughput : 954.9404604342288 \n"
    place(tmp_path, "logs", "tf.txt", text)
    assert protocols.apply("ngc-tensorflow-summary", tmp_path) == {
        "tf": {"train_throughput": 954.9404604342288}
    }


def test_ngc_mxnet_reads_the_table_of_its_benchmark(tmp_path):
    head = f"           |    96     |\n{'-' * 24}\n"
    rates = f"train.total_ips\n{head}     1     |   387.07  |\n     8     |   2998.1  |\n\n"
    latencies = f"train.latency_90\n{head}     1     |  0.25059  |\n"
    place(tmp_path, "logs", "mxnet.txt", rates + latencies)
    expected = {"batch_size_per_device": 96, "1": 387.07, "8": 2998.1}
    assert protocols.apply("ngc-mxnet", tmp_path) == {"mxnet": expected}


def mllog(minutes: float, status: str = "success") -> str:
    events = [
        {"time_ms": 0, "key": "submission_benchmark", "value": "resnet"},
        {"time_ms": 0, "key": "submission_org", "value": "someone"},
        {"time_ms": 1000, "event_type": "INTERVAL_START", "key": "run_start", "value": None},
        {
            "time_ms": 1000 + 60_000 * minutes,
            "key": "run_stop",
            "value": None,
            "metadata": {"status": status},
        },
    ]
    return "".join(f":::MLLOG {json.dumps(event)}\n" for event in events)


def test_mlperf_drops_the_best_and_the_worst(tmp_path):
    for number, minutes in enumerate((30.0, 41.0, 40.0, 42.0, 99.0)):
        place(tmp_path, "resnet", f"result_{number}.txt", mllog(minutes))
    table = protocols.apply("mlperf-olympic", tmp_path)
    assert table["resnet"]["someone"]["olympic_mean_minutes"] == 41.0


def test_mlperf_lets_one_failed_run_be_the_worst_and_no_second(tmp_path):
    for number, status in enumerate(("success", "aborted", "success", "success")):
        place(tmp_path, "resnet", f"result_{number}.txt", mllog(40.0, status))
    one = protocols.read("mlperf-olympic", tmp_path)
    assert one.table["resnet"]["someone"]["olympic_mean_minutes"] == 40.0
    place(tmp_path, "resnet", "result_4.txt", mllog(40.0, "aborted"))
    two = protocols.read("mlperf-olympic", tmp_path)
    assert two.table["resnet"]["someone"]["olympic_mean_minutes"] is None
    assert codes(two) == {"run-failed", "no-score"}


def test_mlperf_needs_its_own_lines(tmp_path):
    place(tmp_path, "resnet", "result_0.txt", "loss 6.9\n")
    with pytest.raises(UserError, match="no :::MLLOG line"):
        protocols.apply("mlperf-olympic", tmp_path)
