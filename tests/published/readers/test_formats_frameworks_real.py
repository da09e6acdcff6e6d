"""MindSpore, OneFlow and PaddlePaddle as others ran them, against what a person reads in their logs."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

import pytest

from trainmark.logs.input import clean_blocks
from trainmark.logs.logged_run import LoggedRun
from trainmark.logs.read import read_runs
from trainmark.logs.recognition import recognize
from trainmark.measure.log_figure import LogFacts, logged_figure

LOGS = Path(__file__).resolve().parents[3].parent / "shared" / "logs"
pytestmark = pytest.mark.skipif(not LOGS.is_dir(), reason="the collected logs are not beside this checkout")

REAL = [
    # file, format, progress lines, batch of a device, devices, precision, first and last loss
    ("paddle/paddle_gpu1_amp_bs128.txt", "paddleclas-2020", 10010, 128, 1, "amp", 7.1162, 5.9274),
    ("paddle/paddle_gpu1_fp32_bs128__49c599ec.txt", "paddleclas-2020", 1006, 128, 1, "fp32", 7.0151, 3.9247),
    ("paddle/paddle_gpu8_amp_bs128.txt", "paddleclas-2020", 1252, 128, 8, "amp", 7.1027, 6.8903),
    ("paddle/paddle_gpu8_fp32_bs96.txt", "paddleclas-2020", 1669, 96, 8, "fp32", 7.0561, 4.8976),
    ("paddle/paddle_gpu32_amp_bs128.txt", "paddleclas-2020", 313, 128, 32, "amp", 7.0321, 6.964),
    ("paddle/paddle_gpu32_amp_bs208.txt", "paddleclas-2020", 193, 208, 32, "amp", 7.1467, 6.9606),
    ("paddle/ppcls_2.0_dygraph__issue590.log", "paddleclas-2.0", 4, 64, None, None, 3.33287, 3.2912),
    ("paddle_bert/base_bs32_fp32_gpu1.log", "paddlenlp", 25, 32, None, None, 11.24324, 9.215364),
    ("paddle_bert/base_bs32_fp32_gpu8.log", "paddlenlp", 25, 32, 8, "fp32", 11.13974, 9.453855),
    ("paddle_bert/base_bs64_fp16_gpu32.log", "paddlenlp", 25, 64, None, "amp", 11.236493, 9.271814),
    ("oneflow/oneflow_cnns_report_lines.log", "oneflow-cnns", 10, None, None, None, 6.505637, 1.047857),
    (
        "oneflow/oneflow_cnns_with_timestamp__PR3886.log",
        "oneflow-cnns",
        5,
        None,
        None,
        None,
        1.7874,
        1.749225,
    ),
    ("oneflow/oneflow_bert_report_lines.log", "oneflow-bert", 10, None, None, None, 11.078, 9.64),
    (
        "oneflow/oneflow_models_rank_interleaved__PR195.log",
        "oneflow-models",
        4,
        None,
        None,
        None,
        1.73143,
        1.7315,
    ),
    ("mindspore/resnet50_gpu_benchmark_fps.log", "mindspore", 1, None, None, None, 6.940182, 6.940182),
]


def real(name: str) -> list[LoggedRun]:
    recognition, blocks = recognize(clean_blocks([(LOGS / name).read_bytes()]), name)
    return list(read_runs(recognition.format, blocks, name))


@pytest.mark.parametrize(("name", "format", "lines", "batch", "devices", "precision", "first", "last"), REAL)
def test_a_real_log_says_what_its_words_say(name, format, lines, batch, devices, precision, first, last):
    (run,) = real(name)
    assert (run.format.name, len(run.steps)) == (format, lines)
    assert (run.settings.get("batch_per_device"), run.world_size) == (batch, devices)
    assert run.settings.get("precision") == precision
    assert (run.steps["loss"][0], run.steps["loss"][-1]) == (first, last)


def throughput(run: LoggedRun) -> float:
    return logged_figure(run.columns(), LogFacts(**run.facts())).throughput


@pytest.mark.parametrize(
    ("name", "whole_batch", "steps_timed"),
    [
        ("paddle_gpu1_amp_bs128.txt", 128, 10005),
        ("paddle_gpu1_fp32_bs128__49c599ec.txt", 128, 1001),
        ("paddle_gpu8_amp_bs128.txt", 1024, 1247),
        ("paddle_gpu8_fp32_bs96.txt", 768, 1664),
    ],
)
def test_a_paddleclas_epoch_is_as_fast_as_its_own_sum_of_seconds(name, whole_batch, steps_timed):
    (run,) = real(f"paddle/{name}")
    (elapsed,) = re.findall(r"elapse_sum: ([\d.]+)s", (LOGS / "paddle" / name).read_text())
    assert throughput(run) == pytest.approx(whole_batch * steps_timed / float(elapsed), rel=0.003)


@pytest.mark.parametrize(
    ("name", "whole_batch", "begin", "end", "steps"),
    [
        ("paddle_gpu32_amp_bs128.txt", 4096, "11:15:46", "11:16:25", 283),
        ("paddle_gpu32_amp_bs208.txt", 6656, "11:09:44", "11:10:20", 170),
    ],
)
def test_paddleclas_on_32_devices_is_as_fast_as_its_clock_says(name, whole_batch, begin, end, steps):
    """Steps counted by hand between two ticks of the clock, each good to a second."""
    (run,) = real(f"paddle/{name}")
    log = (LOGS / "paddle" / name).read_text()
    first = int(re.search(rf"{begin} INFO: epoch:0 +train step:(\d+)", log)[1])
    last = int(re.search(rf"{end} INFO: epoch:0 +train step:(\d+)", log)[1])
    assert last - first == steps
    seconds = (datetime.strptime(end, "%H:%M:%S") - datetime.strptime(begin, "%H:%M:%S")).total_seconds()
    assert throughput(run) == pytest.approx(whole_batch * steps / seconds, rel=0.03)


def test_paddlenlp_on_eight_devices_is_eight_times_what_a_line_says():
    (run,) = real("paddle_bert/base_bs32_fp32_gpu8.log")
    rates = re.findall(r"ips: ([\d.]+) seq", (LOGS / "paddle_bert/base_bs32_fp32_gpu8.log").read_text())[1:]
    assert throughput(run) == pytest.approx(8 * sum(map(float, rates)) / len(rates), rel=0.003)


def test_the_lines_of_oneflows_report_average_to_its_figure():
    (run,) = real("oneflow/oneflow_cnns_report_lines.log")
    assert throughput(run) == pytest.approx(sum(run.steps["rate"][1:]) / 9, rel=0.001)


def test_four_oneflow_ranks_add_up():
    (run,) = real("oneflow/oneflow_models_rank_interleaved__PR195.log")
    assert throughput(run) == pytest.approx(161.66 + 159.71 + 159.48 + 159.49)


def test_the_excerpts_of_several_mindspore_runs_are_parted():
    runs = real("mindspore/deeplabv3_timemonitor.log")
    assert [len(run.steps) for run in runs] == [6, 6, 6, 3]
    assert [run.steps["ms"][1] for run in runs[:3]] == [517.883, 525.698, 556.307]
    seconds = real("mindspore/resnet_8p_epoch_seconds.log")
    assert [run.steps["step"][0] for run in seconds] == [195, 625, 625, 195, 312, 5004, 5004, 5004]
