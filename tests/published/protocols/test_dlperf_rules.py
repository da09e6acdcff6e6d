"""What each DLPerf rule makes of a log whose every line is known."""

from datetime import timedelta

import numpy as np
import pytest
from protocol_logs import (
    START,
    examples,
    matrix,
    mindspore,
    moments,
    mxnet,
    paddle,
    place,
    pytorch,
    tensorflow,
    tensorflow_bert,
    time_history,
)

from trainmark.audit import protocols
from trainmark.base.errors import UserError


def speed_of(name, folder, text, *window, case="1n1g", log="rn50_b128_fp32_1.log"):
    """The one figure of the one log."""
    place(folder, case, log, text)
    (cases,) = protocols.apply(name, folder, *window).values()
    return cases[case]["average_speed"]


def test_pytorch_counts_its_window_from_the_sixth_iteration(tmp_path):
    times = moments(0.32, 24) + moments(0.64, 101, START + timedelta(seconds=0.32 * 24))
    text = "".join(
        f"DLL {time:%Y-%m-%d %H:%M:%S.%f} - Epoch: 0 Iteration: {step}  train.loss : 6.9  total_ips : 1\n"
        for step, time in enumerate(times, 1)
    )
    assert speed_of("dlperf-pytorch-rn50", tmp_path, text) == 200.0


def test_pytorch_bert_is_the_same_rule_on_other_lines(tmp_path):
    text = pytorch(64.0, 32, 1, steps=115).replace(
        "Epoch: 0 Iteration:", "Training Epoch: 0 Training Iteration:"
    )
    text = text.replace("train.loss", "average_loss")
    assert speed_of("dlperf-pytorch-bert", tmp_path, text, log="bert_b32_fp32_1.log") == 64.0


def test_pytorch_examples_averages_the_printed_times(tmp_path):
    text = examples((step, 9.0 if step < 26 else 0.4) for step in range(0, 126))
    assert speed_of("dlperf-pytorch-examples", tmp_path, text) == 320.0


def test_tensorflow_averages_the_rates_after_the_twenty_hidden_steps(tmp_path):
    rates = [500.0] * 20 + [700.0] * 80 + [9.0] * 30
    text = tensorflow(moments(0.2, 130), rates)
    assert speed_of("dlperf-tensorflow-rn50", tmp_path, text) == 660.0
    assert speed_of("dlperf-tensorflow-rn50", tmp_path, text, 40, 120) == 700.0


def test_tensorflow_by_time_measures_ninety_nine_steps_for_a_hundred(tmp_path):
    times = moments(0.2, 100)
    times[-1] += timedelta(seconds=0.2)
    text = tensorflow(times, [1.0] * 100)
    assert speed_of("dlperf-tensorflow-rn50-time", tmp_path, text) == round(128 * 99 / 20.0, 2)


def test_tensorflow_bert_takes_every_tenth_line_and_averages_to_four_digits(tmp_path):
    every_ten = dict(enumerate(moments(0.05, 130), 1))
    text = tensorflow_bert({step: time for step, time in every_ten.items() if step % 10 == 0}, 640.127)
    log = "bert_b32_fp32_1.log"
    assert speed_of("dlperf-tensorflow-bert", tmp_path, text, log=log) == 640.13
    assert speed_of("dlperf-tensorflow-bert-time", tmp_path, text, log=log) == 640.0
    place(tmp_path, "1n1g", "bert_b32_fp32_2.log", text.replace("640.127", "640.128"))
    place(tmp_path, "1n1g", "bert_b32_fp32_3.log", text.replace("640.127", "640.137"))
    table = protocols.apply("dlperf-tensorflow-bert", tmp_path)
    assert table["bert"]["1n1g"]["average_speed"] == 640.1333


def test_tensorflow2_has_a_line_every_hundred_steps(tmp_path):
    text = time_history(moments(40.0, 7), 320.0)
    assert speed_of("dlperf-tensorflow2-rn50", tmp_path, text) == 320.0
    assert speed_of("dlperf-tensorflow2-rn50-time", tmp_path, text) == 320.0


def test_mxnet_takes_the_median_over_ranks_before_the_mean(tmp_path):
    rates = [[100.0, 100.0]] * 20 + [[800.0, 1000.0]] * 100
    text = mxnet(rates, moments(0.25, 120))
    assert speed_of("dlperf-mxnet", tmp_path, text, case="1n2g", log="r50_b128_fp32_1.log") == 900.0


def test_the_median_over_three_ranks_is_not_their_mean(tmp_path):
    text = mxnet([[800.0, 1000.0, 3000.0]] * 120, moments(0.25, 120))
    assert speed_of("dlperf-mxnet", tmp_path, text, case="1n3g") == 1000.0


def test_our_speedup_is_against_the_median_of_the_baseline_and_over_the_fewest_steps(tmp_path):
    matrix(tmp_path, {"1n1g": [100.0, 200.0, 400.0], "1n2g": [600.0]}, pytorch)
    place(tmp_path, "1n2g", "rn50_b128_fp32_2.log", pytorch(600.0, 256, 2, steps=60))
    entry = protocols.ours("dlperf-pytorch-rn50", tmp_path)["rn50"]["b128_fp32"]["1n2g"]
    assert (entry["speedup"], entry["logs"], entry["steps"] < 60) == (3.0, 2, True)


def test_our_figure_of_printed_rates_is_their_harmonic_mean(tmp_path):
    rates = [300.0 if step % 2 else 600.0 for step in range(120)]
    lines = [f"Epoch[0] Batch[{step}]\tSpeed: {rate:.2f} samples/sec\n" for step, rate in enumerate(rates)]
    place(tmp_path, "1n1g", "rn50_b128_fp32_1.log", "".join(lines))
    (entry,) = protocols.ours("dlperf-gluon", tmp_path)["rn50"]["b128_fp32"].values()
    assert entry["median_speed"] == 400.0


def test_mxnet_by_time_counts_the_lines_of_all_ranks(tmp_path):
    text = mxnet([[1.0, 1.0]] * 120, moments(0.25, 120))
    assert speed_of("dlperf-mxnet-time", tmp_path, text, case="1n2g") == 1024.0


def test_gluon_has_one_line_a_step_whatever_the_ranks(tmp_path):
    lines = [
        f"Epoch[0] Batch[{step}]\tSpeed: {300 if step < 20 else 800:.2f} samples/sec\n" for step in range(120)
    ]
    assert speed_of("dlperf-gluon", tmp_path, "".join(lines), case="1n8g") == 800.0


def test_mxnet_bert_turns_latency_into_samples_of_all_ranks(tmp_path):
    lines = [f"[step {step}] throughput=1.0K tokens/s, latency=128.0 ms/batch\n" for step in range(400)]
    assert (
        speed_of("dlperf-mxnet-bert", tmp_path, "".join(lines), case="1n2g", log="bert_b32_fp32_1.log")
        == 500.0
    )


@pytest.mark.parametrize("lines", [119, 121])
def test_mxnet_cannot_take_a_line_more_or_less(tmp_path, lines):
    text = mxnet([[900.0]] * lines, moments(0.25, lines))
    with pytest.raises(UserError, match=rf"needs exactly 120 × 1 lines, and there are {lines}"):
        speed_of("dlperf-mxnet", tmp_path, text)


def test_mindspore_sums_the_sink_epochs_of_all_ranks(tmp_path):
    text = mindspore(1000.0, 512, 4)
    assert speed_of("dlperf-mindspore", tmp_path, text, 100, 200, case="1n4g") == 1000.0


def test_mindspore_bert_goes_by_the_step_alone_and_counts_one_line_past_its_window(tmp_path):
    lines = [f"epoch: 1 step: {step}, loss is 9\nepoch time: 100.000 ms, x\n" for step in range(1, 31)]
    speed = speed_of("dlperf-mindspore-bert", tmp_path, "".join(lines), 10, 20, log="bert_b32_fp32_1.log")
    assert speed == round(32 * 10 / 1.1, 2)


def test_paddle_averages_batch_over_elapsed_time(tmp_path):
    elapsed = [9.0] * 20 + [0.25] * 50 + [0.5] * 50
    text = paddle(moments(0.4, 120), elapsed)
    assert speed_of("dlperf-paddle", tmp_path, text) == float(np.mean([512.0, 256.0]))
    assert speed_of("dlperf-paddle-time", tmp_path, text) == 320.0


def test_paddle_bert_reads_steps_a_second(tmp_path):
    text = "".join(f"epoch: 0, step: {step}, loss: 9, speed: 4.500000 steps/s\n" for step in range(130))
    assert speed_of("dlperf-paddle-bert", tmp_path, text, case="1n8g", log="bert_b32_fp32_1.log") == 1152.0


def test_a_line_that_their_pattern_does_not_fit_ends_the_rule_with_its_text(tmp_path):
    with pytest.raises(UserError, match="cannot read the line 'Speed limits and elapse'"):
        speed_of("dlperf-paddle", tmp_path, "Speed limits and elapse\n")


def test_our_own_figure_keeps_its_digits_where_times_are_in_ms_or_rates_in_steps(tmp_path):
    lines = [f"[step {step}] throughput=1.0K tokens/s, latency=123.4 ms/batch\n" for step in range(400)]
    place(tmp_path / "ms", "1n2g", "bert_b32_fp32_1.log", "".join(lines))
    lines = [f"epoch: 0, step: {step}, loss: 9, speed: 4.567890 steps/s\n" for step in range(130)]
    place(tmp_path / "rate", "4n8g", "bert_b32_fp32_1.log", "".join(lines))
    by_ms = protocols.ours("dlperf-mxnet-bert", tmp_path / "ms")["bert"]["b32_fp32"]["1n2g"]
    by_rate = protocols.ours("dlperf-paddle-bert", tmp_path / "rate")["bert"]["b32_fp32"]["4n8g"]
    assert (by_ms["median_speed"], by_ms["steps"]) == (round(64 / 0.1234, 2), 100)
    assert (by_rate["median_speed"], by_rate["steps"]) == (round(4.56789 * 1024, 2), 100)
