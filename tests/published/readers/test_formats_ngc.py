"""NVIDIA's examples: DLLogger in all its forms, the MXNet speed lines, BERT."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import numpy as np
import pytest

from trainmark.events import Scope
from trainmark.logs.format import Kind
from trainmark.logs.format_file import our_format
from trainmark.logs.input import clean_blocks
from trainmark.logs.logged_run import LoggedRun
from trainmark.logs.read import read_runs
from trainmark.logs.recognition import formats, recognize

LINES = Path(__file__).with_name("lines")
NAMES = (
    "dllogger-pytorch",
    "dllogger",
    "dllogger-tensorflow",
    "dllogger-mxnet",
    "dllogger-json",
    "ngc-mxnet",
    "ngc-bert-pytorch",
    "ngc-bert-tensorflow",
)
FIXTURES = {name: (LINES / f"{name}.txt").read_bytes() for name in NAMES}
PYTORCH = FIXTURES["dllogger-pytorch"]
TENSORFLOW = FIXTURES["dllogger-tensorflow"]
MXNET = FIXTURES["ngc-mxnet"]


def read(name: str, text: bytes) -> list[LoggedRun]:
    return list(read_runs(our_format(name), clean_blocks([text]), "log"))


def only(name: str, text: bytes) -> LoggedRun:
    (run,) = read(name, text)
    return run


def seconds(text: str) -> float:
    """A time stamp as `wall` counts it, by the standard library."""
    return (datetime.fromisoformat(text) - datetime(1970, 1, 1)).total_seconds()


def column(run: LoggedRun, name: str) -> list[float]:
    return run.steps[name].tolist()


@pytest.mark.parametrize("name", FIXTURES)
def test_a_log_is_recognised_as_its_own_format_and_no_other(name):
    recognition, _ = recognize(clean_blocks([FIXTURES[name]]), "log")
    signed = {other.name for other in formats().values() if other.sign.search(FIXTURES[name])}
    assert (recognition.format.name, signed) == (name, {name})


def test_a_step_of_the_pytorch_flavour_is_counted_once_though_it_is_logged_at_two_verbosities():
    run = only("dllogger-pytorch", PYTORCH)
    assert column(run, "step") == [1, 2, 3]
    assert column(run, "rate") == [20, 256, 256]
    assert column(run, "epoch") == [0, 0, 0]


def test_a_loss_that_is_no_number_is_no_finite_one():
    loss = only("dllogger-pytorch", PYTORCH).steps["loss"]
    assert np.isfinite(loss).tolist() == [True, False, True]
    assert (loss[0], loss[2]) == (7.1, 6.9)


def test_a_time_stamp_without_a_fraction_is_read_like_the_others():
    assert column(only("dllogger-pytorch", PYTORCH), "wall") == [
        seconds("2031-05-01 10:00:10"),
        seconds("2031-05-01 10:00:10.500000"),
        seconds("2031-05-01 10:00:11.000000"),
    ]


def test_the_parameters_of_the_pytorch_flavour_are_settings():
    assert only("dllogger-pytorch", PYTORCH).settings == {
        "batch_per_device": 32,
        "world_size": 4,
        "learning_rate": 0.256,
        "momentum": 0.875,
        "layout": "nhwc",
        "precision": "amp",
        "loss_scale": 64.0,
    }


@pytest.mark.parametrize(
    ("flags", "precision", "loss_scale"),
    [
        (b"fp16 : False  static_loss_scale : 1  dynamic_loss_scale : False  amp : False ", "fp32", None),
        (b"fp16 : True  static_loss_scale : 128.0  dynamic_loss_scale : False  amp : False ", "fp16", 128.0),
        (b"static_loss_scale : 1  dynamic_loss_scale : True  amp : True ", "amp", "dynamic"),
        (b"seed : None ", None, None),
    ],
)
def test_precision_is_what_the_flags_say_and_unknown_without_them(flags, precision, loss_scale):
    parameters = b"DLL 2031-05-01 10:00:00.000001 - PARAMETER batch_size : 32  " + flags + b"\n"
    settings = only("dllogger-pytorch", parameters).settings
    assert (settings.get("precision"), settings.get("loss_scale")) == (precision, loss_scale)


def test_an_evaluation_is_the_whole_epochs_and_not_one_batch_of_it():
    run = only("dllogger-pytorch", PYTORCH)
    assert run.evaluations == [{"epoch": 0, "top1": 12.5, "top5": 30.25, "loss": 5.5}]
    assert run.summary == {"rate": 177.0, "top1": 12.5}


def test_a_line_cut_in_the_middle_of_its_rate_is_no_step():
    whole = PYTORCH.index(b"256.00 img/s\nDLL 2031-05-01 10:00:11.2")
    assert column(only("dllogger-pytorch", PYTORCH[: whole + len(b"25")]), "step") == [1, 2]


def test_parameters_after_steps_begin_another_run():
    again = PYTORCH.replace(b"world_size : 4", b"world_size : 8")
    assert [run.settings["world_size"] for run in read("dllogger-pytorch", PYTORCH + again)] == [4, 8]


def test_plain_dllogger_text_gives_its_losses_and_no_rate():
    run = only("dllogger", FIXTURES["dllogger"])
    assert column(run, "loss") == [130, 65]
    assert run.steps["rate"] is None


def test_both_modes_of_the_tensorflow_flavour_are_read():
    run = only("dllogger-tensorflow", TENSORFLOW)
    assert column(run, "step") == [200, 201, 202]
    assert column(run, "epoch") == [0, 0, 1]
    assert column(run, "rate") == [64.25, 63.75, 64.0]
    assert np.isnan(run.steps["loss"]).tolist() == [True, True, False]
    assert (run.steps["loss"][2], run.steps["lr"][2]) == (4.0, 0.05)


def test_mixed_precision_wins_over_the_precision_parameter_of_the_tensorflow_flavour():
    run = only("dllogger-tensorflow", TENSORFLOW)
    assert run.settings == {
        "batch_per_device": 16,
        "world_size": 2,
        "learning_rate": 0.1,
        "momentum": 0.9,
        "layout": "NHWC",
        "precision": "amp",
        "loss_scale": 128.0,
    }
    off = TENSORFLOW.replace(b"use_tf_amp : True", b"use_tf_amp : False")
    assert only("dllogger-tensorflow", off).settings["precision"] == "fp32"


def test_a_loss_scale_that_is_not_used_is_not_told():
    off = TENSORFLOW.replace(b"use_static_loss_scaling : True", b"use_static_loss_scaling : False")
    assert "loss_scale" not in only("dllogger-tensorflow", off).settings


def test_the_mean_of_rates_of_the_tensorflow_flavour_is_its_own_conclusion():
    run = only("dllogger-tensorflow", TENSORFLOW)
    assert run.summary == {"rate": 64.0}
    assert run.evaluations == [{"top1": 0.25, "top5": 0.5}]


def test_the_later_mxnet_flavour_counts_its_batch_over_all_devices():
    run = only("dllogger-mxnet", FIXTURES["dllogger-mxnet"])
    assert column(run, "step") == [19, 39]
    assert column(run, "rate") == [640.5, 641.5]
    assert column(run, "loss") == [6.9, 6.8]
    assert column(run, "lr") == [0.01, 0.02]
    assert run.settings == {
        "global_batch": 256,
        "learning_rate": 0.256,
        "momentum": 0.875,
        "layout": "NHWC",
        "precision": "fp16",
    }
    assert run.evaluations == [{"epoch": 0, "top1": 0.125, "top5": 0.25}]
    assert run.summary == {"rate": 641.0, "top1": 0.125}


def test_json_lines_are_read_with_and_without_their_prefix_in_any_order_of_keys():
    run = only("dllogger-json", FIXTURES["dllogger-json"])
    assert column(run, "step") == [5, 10]
    assert column(run, "wall") == [1900000002.0, 1900000007.0]
    assert column(run, "rate") == [64.5, 63.5]
    assert run.steps["loss"][0] == 8.5
    assert not np.isfinite(run.steps["loss"][1])
    assert run.steps["lr"][1] == 0.05
    assert run.settings == {
        "batch_per_device": 32,
        "world_size": 2,
        "learning_rate": 0.1,
        "momentum": 0.9,
        "precision": "amp",
        "loss_scale": 128.0,
    }
    assert run.evaluations == [{"epoch": 0, "top1": 2.5, "top5": 5.0, "loss": 7.5}]
    assert run.summary == {"rate": 64.0, "top1": 2.5}


def test_the_runs_of_one_mxnet_file_are_parted_and_every_rank_is_told():
    one, two = read("ngc-mxnet", MXNET)
    assert (one.settings["world_size"], one.settings["global_batch"]) == (1, 64)
    assert (two.settings["world_size"], two.settings["global_batch"]) == (2, 128)
    assert (column(one, "step"), column(one, "last_step")) == ([0, 20], [19, 39])
    assert sorted(zip(column(two, "rank"), column(two, "rate"), strict=True)) == [(0, 256.5), (1, 255.5)]
    assert one.summary == {"seconds": 20.5}


def test_a_decimal_comma_and_a_tag_within_a_time_stamp_are_understood():
    _, two = read("ngc-mxnet", MXNET)
    assert sorted(column(two, "wall")) == [
        seconds("2031-05-01 10:01:10.001"),
        seconds("2031-05-01 10:01:10.002"),
    ]


def test_the_arguments_of_mxnet_are_settings():
    one, _ = read("ngc-mxnet", MXNET)
    wanted = {"precision": "fp16", "layout": "NHWC", "learning_rate": 0.128, "momentum": 0.875}
    assert one.settings.items() >= wanted.items()


def test_bert_for_pytorch_says_how_many_sequences_an_iteration_has():
    run = only("ngc-bert-pytorch", FIXTURES["ngc-bert-pytorch"])
    assert run.settings == {
        "batch_per_device": 8,
        "accumulation": 12,
        "world_size": 8,
        "precision": "fp32",
        "learning_rate": 0.006,
    }
    assert (column(run, "step"), column(run, "loss")) == ([0, 1], [11.5, 11.0])
    assert np.diff(run.steps["wall"]).round(6).tolist() == [4.0]
    assert run.steps["lr"][0] == 0.0004
    assert run.summary == {"seconds": 15.5, "rate": 190.5, "loss": 11.0}


def test_bert_for_tensorflow_takes_its_batch_from_training_and_not_from_evaluation():
    run = only("ngc-bert-tensorflow", FIXTURES["ngc-bert-tensorflow"])
    assert run.settings == {
        "batch_per_device": 64,
        "global_batch": 512,
        "precision": "fp16",
        "loss_scale": "dynamic",
    }
    assert (column(run, "step"), column(run, "rate")) == ([1, 1], [247.125, 256.0])
    assert (column(run, "loss"), column(run, "lr")) == ([11.0, 10.5], [0.0, 3.75e-07])
    assert run.summary == {"rate": 250.5}


def test_each_format_says_what_its_rate_means():
    meant = {
        name: (formats()[name].rate.unit, formats()[name].rate.kind, formats()[name].rate.every_rank)
        for name in FIXTURES
        if name != "dllogger"
    }
    assert meant == {
        "dllogger-pytorch": ("images", Kind.SINCE_LAST, False),
        "dllogger-tensorflow": ("images", Kind.INSTANT, False),
        "dllogger-mxnet": ("images", Kind.SINCE_LAST, False),
        "dllogger-json": ("images", Kind.SINCE_LAST, False),
        "ngc-mxnet": ("images", Kind.SINCE_LAST, True),
        "ngc-bert-pytorch": ("sequences", Kind.SINCE_LAST, False),
        "ngc-bert-tensorflow": ("sequences", Kind.SINCE_LAST, False),
    }
    assert all(formats()[name].rate.scope is Scope.GLOBAL for name in FIXTURES)
