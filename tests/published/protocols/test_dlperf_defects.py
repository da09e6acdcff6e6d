"""Where the DLPerf rules go wrong: their figure as they give it, the doubt, and ours beside it.

The numbers are those of the list of defects in docs/protocols.md.
"""

import math
from datetime import datetime, timedelta

import pytest
from protocol_logs import (
    examples,
    matrix,
    mindspore,
    moments,
    mxnet,
    oneflow,
    paddle,
    place,
    pytorch,
    tensorflow,
    tensorflow_bert,
    time_history,
)

from trainmark.audit import protocols


def codes(reading):
    return {doubt.code for doubt in reading.doubts}


def only(table, case="1n1g"):
    (cases,) = table.values()
    return cases[case]


def one_log(folder, text, name, *window, case="1n1g", log="rn50_b128_fp32_1.log"):
    place(folder, case, log, text)
    return protocols.read(name, folder, *window)


def test_1_a_truncated_log_counts_as_zero(tmp_path):
    reading = one_log(tmp_path, pytorch(367.4, 128, 1, steps=99), "dlperf-pytorch-rn50")
    assert reading.table == {
        "rn50": {"1n1g": {"average_speed": 0, "batch_size_per_device": 128, "speedup": 1.0}}
    }
    assert {"truncated-counted-as-zero", "no-baseline"} <= codes(reading)
    assert reading.ours["rn50"]["b128_fp32"]["1n1g"]["median_speed"] == pytest.approx(367.4, abs=0.01)


def test_1_one_truncated_log_of_three_drags_the_average_down(tmp_path):
    matrix(tmp_path, {"1n1g": [400.0, 400.0, 400.0]}, pytorch)
    place(tmp_path, "1n1g", "rn50_b128_fp32_2.log", pytorch(400.0, 128, 1, steps=50))
    reading = protocols.read("dlperf-pytorch-rn50", tmp_path)
    assert only(reading.table)["average_speed"] == 266.67
    assert only(reading.table)["median_speed"] == 400.0
    assert [doubt.message for doubt in reading.doubts if doubt.code == "truncated-counted-as-zero"] == [
        "1n1g/rn50_b128_fp32_2.log: the log ends before line 120 of the rule and counts as 0 img/s; "
        "ours is 400.0 over 30 steps."
    ]


def test_1_a_mean_of_no_rates_is_not_a_number(tmp_path):
    reading = one_log(tmp_path, "nothing here\n", "dlperf-tensorflow-rn50")
    assert math.isnan(only(reading.table)["average_speed"])
    assert "window-empty" in codes(reading)


def test_1_a_mean_of_fewer_rates_does_not_say_so(tmp_path):
    reading = one_log(tmp_path, tensorflow(moments(0.32, 60), [400.0] * 60), "dlperf-tensorflow-rn50")
    assert only(reading.table)["average_speed"] == 400.0
    assert codes(reading) == {"window-shortened"}


def test_1_mindspore_leaves_a_short_log_out(tmp_path):
    matrix(tmp_path, {"1n1g": [370.0, 370.0]}, mindspore)
    place(tmp_path, "1n1g", "rn50_b128_fp32_3.log", mindspore(100.0, 128, 1, epochs=9))
    reading = protocols.read("dlperf-mindspore", tmp_path, 100, 200)
    assert only(reading.table)["average_speed"] == 370.0
    assert "log-left-out" in codes(reading)


def test_2_without_one_device_every_speedup_is_one(tmp_path):
    reading = protocols.read(
        "dlperf-pytorch-rn50", matrix(tmp_path, {"1n4g": [1500.0], "1n8g": [2900.0]}, pytorch)
    )
    assert reading.table == {
        "rn50": {
            "1n1g": {"average_speed": {}},
            "1n4g": {"average_speed": 1500.0, "batch_size_per_device": 128, "speedup": 1.0},
            "1n8g": {"average_speed": 2900.0, "batch_size_per_device": 128, "speedup": 1.0},
        }
    }
    assert codes(reading) == {"no-baseline"}
    assert reading.ours["rn50"]["b128_fp32"]["1n8g"]["speedup"] is None


def test_3_another_precision_of_the_same_number_overwrites(tmp_path):
    matrix(tmp_path, {"1n1g": [367.51], "1n8g": [2859.0]}, pytorch, "r50_b128_fp32")
    before = protocols.apply("dlperf-pytorch-rn50", tmp_path)
    matrix(tmp_path, {"1n1g": [849.44]}, pytorch, "r50_b256_amp")
    reading = protocols.read("dlperf-pytorch-rn50", tmp_path)
    assert (before["r50"]["1n1g"]["median_speed"], before["r50"]["1n8g"]["speedup"]) == (367.51, 7.78)
    assert (only(reading.table)["median_speed"], only(reading.table, "1n8g")["speedup"]) == (849.44, 3.37)
    assert {"overwritten", "mixed-configurations"} <= codes(reading)
    assert reading.ours["r50"]["b128_fp32"]["1n8g"]["speedup"] == 7.78
    assert reading.ours["r50"]["b256_amp"]["1n1g"]["median_speed"] == 849.44


def test_4_sixteen_nodes_are_read_where_theirs_fails(tmp_path):
    reading = protocols.read(
        "dlperf-pytorch-rn50", matrix(tmp_path, {"1n1g": [100.0], "16n8g": [11000.0]}, pytorch)
    )
    assert only(reading.table, "16n8g")["speedup"] == 110.0
    assert codes(reading) == {"theirs-cannot-read"}


def test_5_oneflow_subtracts_throughputs_where_no_time_is_printed(tmp_path):
    rates = [288.088, 385.628, 386.264, 385.723, 384.622, 385.367, 384.704]
    reading = one_log(tmp_path, oneflow(rates, (1, 1, 128)), "dlperf-oneflow")
    (row,) = reading.table["rows"]
    assert row["throughput"] == 131.58
    assert codes(reading) == {"rate-taken-for-time"}
    assert reading.ours["rows"][0]["throughput"] == pytest.approx(385.38, abs=0.01)


def test_8_lines_of_eight_ranks_are_counted_as_steps(tmp_path):
    lines = [(step, 0.4 if step < 21 else 0.8) for step in range(6, 126) for _ in range(8)]
    reading = one_log(tmp_path, examples(lines), "dlperf-pytorch-examples", case="1n8g")
    assert only(reading.table, "1n8g")["average_speed"] == 2560.0
    assert "ranks-counted-as-steps" in codes(reading)
    assert any("100 lines of the window are 13 iterations" in doubt.message for doubt in reading.doubts)
    assert reading.ours["rn50"]["b128_fp32"]["1n8g"]["median_speed"] == pytest.approx(1280.0, rel=0.02)


def test_9_the_tens_digit_of_a_step_time_is_lost(tmp_path):
    lines = [(step, 12.054 if step == 60 else 0.5) for step in range(126)]
    reading = one_log(tmp_path, examples(lines), "dlperf-pytorch-examples")
    assert only(reading.table)["average_speed"] == round(128 * 100 / (99 * 0.5 + 2.054), 2)
    assert codes(reading) == {"tens-digit-lost"}
    assert reading.ours["rn50"]["b128_fp32"]["1n1g"]["median_speed"] == pytest.approx(
        128 * 100 / 61.554, abs=0.01
    )


def test_10_mxnet_warms_up_for_twenty_steps_or_for_one(tmp_path):
    text = mxnet([[100.0]] * 20 + [[900.0]] * 100, moments(0.1422, 120))
    twenty = one_log(tmp_path, text, "dlperf-mxnet", 20, 120)
    more = one_log(tmp_path, text, "dlperf-mxnet", 21, 120)
    assert only(twenty.table)["average_speed"] == 900.0
    assert only(more.table)["average_speed"] == round((19 * 100 + 100 * 900) / 119, 2)
    assert "warmup-not-as-asked" in codes(more) - codes(twenty)


def test_11_tensorflow2_divides_by_steps_that_it_did_not_time(tmp_path):
    reading = one_log(tmp_path, time_history(moments(40.0, 7), 320.0), "dlperf-tensorflow2-rn50-time", 0, 600)
    assert only(reading.table)["average_speed"] == 384.0
    assert codes(reading) == {"divides-by-other-steps"}
    assert reading.ours["rn50"]["b128_fp32"]["1n1g"]["median_speed"] == 320.0


def test_11_tensorflow2_is_negative_over_midnight(tmp_path):
    times = moments(40.0, 7, datetime(2020, 9, 5, 23, 57, 0))
    reading = one_log(tmp_path, time_history(times, 320.0), "dlperf-tensorflow2-rn50-time")
    assert only(reading.table)["average_speed"] < 0
    assert codes(reading) == {"negative-over-midnight"}
    assert reading.ours["rn50"]["b128_fp32"]["1n1g"]["median_speed"] == 320.0


def test_12_iteration_ten_is_found_again_in_iteration_one_hundred(tmp_path):
    times = {step: time for step, time in enumerate(moments(0.05, 130), 1) if step % 10 == 0}
    log = "bert_b32_fp32_1.log"
    reading = one_log(
        tmp_path, tensorflow_bert(times, 640.0), "dlperf-tensorflow-bert-time", 10, 120, log=log
    )
    assert only(reading.table)["average_speed"] == 640.0 * 110 / 20
    assert codes(reading) == {"start-mark-recurs"}
    assert reading.ours["bert"]["b32_fp32"]["1n1g"]["median_speed"] == 640.0


def test_13_a_log_longer_than_the_window_is_cut_at_the_first_rank_that_leaves_it(tmp_path):
    lines = []
    for epoch in range(1, 23):
        if epoch < 20:
            lines += [f"epoch: {epoch} step: 10, loss is 6.9\n"] * 2 + ["epoch time: 1280.000 ms, x\n"] * 2
        elif epoch == 20:
            lines += [f"epoch: {epoch} step: 10, loss is 6.9\n"] * 2 + ["epoch time: 1280.000 ms, x\n"]
            lines += ["epoch: 21 step: 10, loss is 6.9\n", "epoch time: 1280.000 ms, x\n"]
        else:
            lines += [f"epoch: {epoch} step: 10, loss is 6.9\n"] * 2 + ["epoch time: 1280.000 ms, x\n"] * 2
    reading = one_log(tmp_path, "".join(lines), "dlperf-mindspore", 100, 200, case="1n2g")
    assert only(reading.table, "1n2g")["average_speed"] == round(2000 * 20 / 19, 2)
    assert "rank-lines-misassigned" in codes(reading)
    assert reading.ours["rn50"]["b128_fp32"]["1n2g"]["median_speed"] == 2000.0


def test_13_seconds_are_taken_for_milliseconds(tmp_path):
    text = mindspore(400.0, 128, 1).replace(" ms, per", " s, per")
    assert "seconds-taken-for-ms" in codes(one_log(tmp_path, text, "dlperf-mindspore", 100, 200))


def test_14_paddle_bert_counts_the_samples_of_one_node(tmp_path):
    text = "".join(f"step: {step}, speed: 4.500000 steps/s\n" for step in range(130))
    log = "bert_b32_fp32_1.log"
    reading = one_log(tmp_path, text, "dlperf-paddle-bert", case="4n8g", log=log)
    assert only(reading.table, "4n8g")["average_speed"] == 1152.0
    assert "no-node-factor" in codes(reading)
    assert reading.ours["bert"]["b32_fp32"]["4n8g"]["median_speed"] == 4608.0


def test_15_a_mean_of_rates_lies_above_samples_over_time(tmp_path):
    seconds = [0.2, 0.6] * 50
    times = [moments(0.0, 1)[0] + timedelta(seconds=sum(seconds[: step + 1])) for step in range(100)]
    text = tensorflow(times, [128 / value for value in seconds])
    by_rate = one_log(tmp_path, text, "dlperf-tensorflow-rn50")
    by_time = one_log(tmp_path, text, "dlperf-tensorflow-rn50-time")
    assert only(by_rate.table)["average_speed"] == 426.66
    assert only(by_time.table)["average_speed"] == pytest.approx(320, rel=0.01)
    assert codes(by_rate) == {"mean-of-rates"}
    assert codes(by_time) == set()


def test_15_so_does_a_mean_of_batch_over_elapsed_time(tmp_path):
    elapsed = [0.4] * 20 + [0.2, 0.6] * 50
    assert "mean-of-rates" in codes(one_log(tmp_path, paddle(moments(0.4, 120), elapsed), "dlperf-paddle"))


def test_17_a_log_that_is_a_copy_of_another_is_named(tmp_path):
    text = pytorch(6000.0, 2048, 16)
    place(tmp_path, "2n8g", "r50_b128_fp32_5.log", text)
    place(tmp_path, "4n8g", "r50_b128_fp32_5.log", text)
    reading = protocols.read("dlperf-pytorch-rn50", tmp_path)
    assert only(reading.table, "4n8g")["average_speed"] == 2 * only(reading.table, "2n8g")["average_speed"]
    assert "copied-logs" in codes(reading)
