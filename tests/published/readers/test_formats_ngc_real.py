"""NVIDIA's examples as others ran them: the collected logs against what a person reads in them."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import numpy as np
import pytest

from trainmark.logs.input import clean_blocks
from trainmark.logs.logged_run import LoggedRun
from trainmark.logs.read import read_runs
from trainmark.logs.recognition import recognize

LOGS = Path(__file__).resolve().parents[3].parent / "shared" / "logs"
pytestmark = pytest.mark.skipif(not LOGS.is_dir(), reason="the collected logs are not beside this checkout")

REAL = [
    # file, run, steps, (batch a device, whole batch), world size, precision, first and last loss
    ("pytorch_dllogger/dlperf_readme_2n8g_4n8g.log", 1, 12, (128, None), 16, "fp32", (7.09304, 6.67351)),
    ("pytorch_dllogger/dlperf_readme_2n8g_4n8g.log", 2, 12, (128, None), 32, "fp32", (7.09304, 6.67351)),
    ("pytorch_dllogger/pytorch_gpu1_amp_bs128.txt", 1, 99, (128, None), 1, "amp", (6.98774, 6.91866)),
    ("pytorch_dllogger/pytorch_gpu1_fp32_bs128.txt", 1, 99, (128, None), 1, "fp32", (7.10564, 6.905)),
    ("pytorch_dllogger/pytorch_gpu8_amp_bs128.txt", 1, 99, (128, None), 8, "amp", (7.09887, 6.90644)),
    (
        "pytorch_dllogger/pytorch_gpu8_amp_bs256__c85040b6.txt",
        1,
        63,
        (256, None),
        8,
        "amp",
        (7.10741, 5.25687),
    ),
    ("pytorch_dllogger/pytorch_gpu8_fp32_bs128.txt", 1, 99, (128, None), 8, "fp32", (7.07414, 6.91084)),
    ("dllogger/example_stdout_log.txt", 1, 20, (None, None), None, None, (130.0, 6.5)),
    ("dllogger/example_resnet_log.json", 1, 8, (128, None), 1, "amp", (8.56640625, 6.99453125)),
    ("tensorflow_dllogger/tf_gpu1_amp_bs128.txt", 1, 300, (128, None), 1, "amp", None),
    ("tensorflow_dllogger/tf_gpu1_amp_bs256.txt", 1, 300, (256, None), 1, "amp", None),
    ("tensorflow_dllogger/tf_gpu8_amp_bs128.txt", 1, 300, (128, None), 8, "amp", None),
    ("tensorflow_dllogger/tf_gpu8_fp32_bs128.txt", 1, 300, (128, None), 8, "fp32", None),
    (
        "tensorflow_dllogger/tf_imgs_per_sec__DALI_issue2242.log",
        1,
        3,
        (None, None),
        None,
        None,
        (4.112863540649414, 4.526424884796143),
    ),
    ("mxnet_dllogger/mxnet_gpu1_gpu8_amp_bs128.txt", 1, 75, (None, 128), 1, "fp16", None),
    ("mxnet_dllogger/mxnet_gpu1_gpu8_amp_bs128.txt", 2, 600, (None, 1024), 8, "fp16", None),
    ("mxnet_dllogger/mxnet_gpu1_gpu8_amp_bs256__b517482c.txt", 1, 75, (None, 256), 1, "fp16", None),
    ("mxnet_dllogger/mxnet_gpu1_gpu8_amp_bs256__b517482c.txt", 2, 600, (None, 2048), 8, "fp16", None),
    ("mxnet_dllogger/mxnet_gpu1_gpu8_fp32_bs96.txt", 1, 75, (None, 96), 1, "fp32", None),
    ("mxnet_dllogger/mxnet_gpu1_gpu8_fp32_bs96.txt", 2, 600, (None, 768), 8, "fp32", None),
    ("mxnet_dllogger/mxnet_dllogger_parameter__DLE_issue884.log", 1, 0, (None, 408), None, "fp16", None),
    (
        "pytorch_bert/bert_base_lamb_pretraining.pyt_bert_pretraining_phase1_fp16_bs64_gpu8.log",
        1,
        55,
        (64, None),
        8,
        "fp16",
        (11.18158143939394, 7.987893104553223),
    ),
    (
        "pytorch_bert/bert_base_lamb_pretraining.pyt_bert_pretraining_phase1_fp32_bs48_gpu8.log",
        1,
        50,
        (48, None),
        8,
        "fp32",
        (11.182149719108235, 7.983053684234619),
    ),
    (
        "tf_bert/tf_bert_pretraining_lamb_base_fp16_bs64_gpu1.log",
        1,
        55,
        (64, 67584),
        None,
        "fp16",
        (11.1422, 11.0455),
    ),
    (
        "tf_bert/tf_bert_pretraining_lamb_base_fp16_bs64_gpu32.log",
        1,
        52,
        (None, None),
        None,
        None,
        (11.1596, 9.8559),
    ),
    (
        "tf_bert/tf_bert_pretraining_lamb_base_fp32_bs32_gpu1.log",
        1,
        50,
        (32, 67584),
        None,
        "fp32",
        (11.1179, 10.968),
    ),
    (
        "tf_bert/tf_bert_pretraining_lamb_base_fp32_bs32_gpu32.log",
        1,
        45,
        (None, None),
        None,
        None,
        (11.1466, 9.7943),
    ),
    (
        "tf_bert/tf_bert_pretraining_lamb_base_fp32_bs48_gpu1.log",
        1,
        50,
        (48, 67584),
        None,
        "fp32",
        (11.1445, 10.9854),
    ),
    (
        "tf_bert/tf_bert_pretraining_lamb_base_fp32_bs48_gpu32.log",
        1,
        45,
        (None, None),
        None,
        None,
        (11.1917, 9.8816),
    ),
]


def real(file: str) -> list[LoggedRun]:
    """The runs of a collected log, in the format that its content tells."""
    recognition, blocks = recognize(clean_blocks([(LOGS / file).read_bytes()]), file)
    return list(read_runs(recognition.format, blocks, file))


@pytest.mark.parametrize(("file", "number", "steps", "batch", "world_size", "precision", "loss"), REAL)
def test_a_real_log_is_read_as_a_person_reads_it(file, number, steps, batch, world_size, precision, loss):
    run = real(file)[number - 1]
    settings = run.settings
    assert len(run.steps) == steps
    assert (settings.get("batch_per_device"), settings.get("global_batch")) == batch
    assert (settings.get("world_size"), settings.get("precision")) == (world_size, precision)
    if loss is not None:
        assert (run.steps["loss"][0], run.steps["loss"][-1]) == loss


@pytest.mark.parametrize("file", sorted({row[0] for row in REAL}))
def test_a_real_log_holds_no_run_that_was_not_counted(file):
    assert len(real(file)) == max(row[1] for row in REAL if row[0] == file)


# Two progress lines of a run as a person finds them: the words of each, and the samples between them.
BY_HAND = [
    # iterations 20 to 99 of 128 images on each device
    ("pytorch_dllogger/pytorch_gpu1_fp32_bs128.txt", "Iteration: 20 ", "Iteration: 99 ", 79 * 128, 367.44),
    (
        "pytorch_dllogger/pytorch_gpu8_amp_bs128.txt",
        "Iteration: 20 ",
        "Iteration: 99 ",
        79 * 128 * 8,
        6100.04,
    ),
    ("tensorflow_dllogger/tf_gpu8_fp32_bs128.txt", "(0, 220) ", "(0, 499) ", 279 * 128 * 8, 3101.37),
    ("tensorflow_dllogger/tf_gpu1_amp_bs256.txt", "(0, 220) ", "(0, 499) ", 279 * 256, 967.14),
    # 67584 sequences an iteration: 64 × 132 × 8
    (
        "pytorch_bert/bert_base_lamb_pretraining.pyt_bert_pretraining_phase1_fp16_bs64_gpu8.log",
        "Training Iteration: 10 ",
        "Training Iteration: 49 ",
        39 * 64 * 132 * 8,
        4060.17,
    ),
    (
        "tf_bert/tf_bert_pretraining_lamb_base_fp32_bs32_gpu1.log",
        "Iteration: 10 ",
        "Iteration: 50 ",
        40 * 67584,
        142.56,
    ),
]


def stamped(line: str) -> float:
    """The time stamp after `DLL `, by the standard library."""
    words = line.rpartition("DLL ")[2].split(" ")
    return (datetime.fromisoformat(f"{words[0]} {words[1]}") - datetime(1970, 1, 1)).total_seconds()


@pytest.mark.parametrize(("file", "first", "last", "samples", "rate"), BY_HAND)
def test_wall_clock_between_two_lines_gives_the_rate_worked_out_by_hand(file, first, last, samples, rate):
    lines = (LOGS / file).read_text().splitlines()
    begin, end = (
        next(stamped(line) for line in lines if word in line and "DLL " in line) for word in (first, last)
    )
    wall = real(file)[0].steps["wall"]
    window = wall[(wall >= begin) & (wall <= end)]
    assert (window[0], window[-1]) == pytest.approx((begin, end), abs=1e-6)
    assert samples / (window[-1] - window[0]) == pytest.approx(rate, abs=0.005)


def test_the_printed_rate_of_mxnet_is_the_global_batch_over_the_time_between_two_lines_of_a_rank():
    _, run = real("mxnet_dllogger/mxnet_gpu1_gpu8_fp32_bs96.txt")
    mine = run.steps["rank"] == 3
    wall, rate = run.steps["wall"][mine], run.steps["rate"][mine]
    assert len(wall) == 75
    worked_out = 20 * 768 / np.diff(wall)
    assert np.median(worked_out) == pytest.approx(np.median(rate[1:]), rel=0.002)
