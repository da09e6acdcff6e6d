"""The logs of MindSpore, OneFlow and PaddlePaddle: invented lines for every group and trap."""

from __future__ import annotations

import math
import re
from datetime import datetime, timezone
from pathlib import Path

import pytest

from trainmark.events import Scope
from trainmark.logs.format import Kind
from trainmark.logs.input import clean_blocks
from trainmark.logs.logged_run import LoggedRun
from trainmark.logs.read import read_runs
from trainmark.logs.recognition import formats, recognize

LINES = Path(__file__).with_name("lines")
EXAMPLES = {
    name: (LINES / f"{name}.txt").read_text()
    for name in (
        "mindspore",
        "oneflow-cnns",
        "oneflow-bert",
        "oneflow-models",
        "oneflow-wide-deep",
        "oneflow-libai",
        "paddleclas-2020",
        "paddleclas-2.0",
        "paddleclas-2.x",
        "paddlenlp",
    )
}
CNNS = EXAMPLES["oneflow-cnns"]
PADDLE = EXAMPLES["paddleclas-2020"]

FPS = "epoch: [0/1] step: [20/90], loss is 7.1 Epoch time: 9000.1 ms, fps: 50 img/sec.\n"
GLUED = "epoch: [0/1] step: [40/90], loss is 7.078993Epoch time: 3438.9 ms, fps: 148 img/sec.\n"
IN_SECONDS = (
    "2023-02-17 14:27:29,405:INFO:epoch: [1/90] loss: 1.08, epoch time: 4.0 s, per step time: 20.0 ms\n"
)


def read(name: str, text: str) -> list[LoggedRun]:
    return list(read_runs(formats()[name], clean_blocks([text.encode()]), "log"))


def only(name: str, text: str) -> LoggedRun:
    (run,) = read(name, text)
    return run


def column(run: LoggedRun, name: str) -> list[float]:
    """The column with None for what a line does not say."""
    return [None if math.isnan(value) else value for value in run.steps[name]]


def moment(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=timezone.utc).timestamp()


@pytest.mark.parametrize("name", EXAMPLES)
def test_each_format_is_recognised_and_bears_no_other_formats_sign(name):
    blocks = list(clean_blocks([EXAMPLES[name].encode()]))
    assert recognize(blocks, "log")[0].format.name == name
    signs = {other for other, format in formats().items() if format.sign.search(b"".join(blocks))}
    assert signs == {name}


@pytest.mark.parametrize(
    ("name", "scope", "kind", "every_rank"),
    [
        ("mindspore", Scope.RANK, Kind.SINCE_LAST, True),
        ("oneflow-cnns", Scope.GLOBAL, Kind.SINCE_LAST, False),
        ("oneflow-models", Scope.RANK, Kind.SINCE_LAST, True),
        ("oneflow-libai", Scope.GLOBAL, Kind.CUMULATIVE, False),
        ("paddleclas-2020", Scope.RANK, Kind.CUMULATIVE, False),
        ("paddleclas-2.x", Scope.RANK, Kind.CUMULATIVE, False),
        ("paddlenlp", Scope.RANK, Kind.SINCE_LAST, False),
    ],
)
def test_each_format_says_what_its_rate_counts(name, scope, kind, every_rank):
    rate = formats()[name].rate
    assert (rate.scope, rate.kind, rate.every_rank) == (scope, kind, every_rank)


def test_mindspore_times_stand_beside_their_losses_in_milliseconds():
    run = only("mindspore", EXAMPLES["mindspore"])
    assert column(run, "epoch") == [1, 2, 3]
    assert column(run, "step") == [10, 10, 10]
    assert column(run, "loss") == [6.9, 6.5, 6.25]
    assert column(run, "ms") == [500, 100, 100]
    assert run.settings == {"batch_per_device": 32, "world_size": 1, "momentum": 0.9}


def test_eight_untagged_mindspore_ranks_keep_eight_times_a_step():
    losses = "".join(f"epoch: {{0}} step: 10, loss is {rank}.5\n" for rank in range(8))
    times = "".join(f"epoch time: 1000.0 ms, per step time: {100 + rank}.0 ms\n" for rank in range(8))
    run = only("mindspore", "".join((losses + times).format(epoch) for epoch in (1, 2)))
    assert column(run, "ms") == [100 + rank for rank in range(8)] * 2
    assert column(run, "loss") == [rank + 0.5 for rank in range(8)] * 2
    assert column(run, "epoch") == [1] * 8 + [2] * 8


def test_a_mindspore_rank_that_lags_an_epoch_is_no_second_run():
    lagging = "epoch: 2 step: 5, loss is 1.0\nepoch: 1 step: 5, loss is 2.0\n"
    assert len(read("mindspore", "epoch: 1 step: 5, loss is 3.0\n" + lagging)) == 1


def test_mindspore_losses_of_single_steps_are_kept_and_the_time_goes_to_the_last():
    steps = "".join(f"epoch: 1 step: {step}, loss is {step}.0\n" for step in (1, 2, 3))
    run = only("mindspore", steps + "epoch time: 30.0 ms, per step time: 10.0 ms\n")
    assert column(run, "loss") == [1, 2, 3]
    assert column(run, "ms") == [None, None, 10]


def test_a_time_glued_to_a_mindspore_loss_is_read():
    run = only("mindspore", FPS + GLUED)
    assert column(run, "loss") == [7.1, 7.078993]
    assert column(run, "rate") == [50, 148]
    assert column(run, "step") == [20, 40]


def test_mindspore_epochs_without_a_step_number_stand_for_the_steps_their_times_divide_to():
    run = only("mindspore", IN_SECONDS)
    assert column(run, "step") == [200]
    assert column(run, "wall") == [moment("2023-02-17T14:27:29.405")]


def test_mindspore_losses_without_any_time_do_not_pile_up():
    text = b"".join(b"epoch: %d step: 1, loss is 2.5\n" % epoch for epoch in range(1, 5001))
    rows = list(formats()["mindspore"].rewrite([text]))
    assert rows[-1].count(b"mindspore:") <= 2
    assert b"".join(rows).count(b"mindspore:") == 5000


def test_oneflow_cnns_reads_its_header_and_both_kinds_of_line():
    run = only("oneflow-cnns", CNNS)
    assert run.settings == {
        "nodes": 3,
        "devices_per_node": 2,
        "batch_per_device": 16,
        "precision": "amp",
        "learning_rate": 0.256,
        "momentum": 0.875,
    }
    assert run.world_size == 6
    assert column(run, "rate") == [80.5, 96.0, 60.0]
    assert column(run, "loss") == [6.5, math.inf, 6.0]
    assert column(run, "wall") == [1600000000.5, None, 1600000040.5]
    assert column(run, "epoch") == [0, 0, 1]
    assert run.evaluations == [{"epoch": 0, "top1": 0.125, "top5": 0.25}]


def test_a_second_header_of_oneflow_cnns_begins_a_second_run():
    assert [len(run.steps) for run in read("oneflow-cnns", CNNS * 2)] == [3, 3]


def test_oneflow_bert_reads_its_speed_and_its_trailing_time():
    run = only("oneflow-bert", EXAMPLES["oneflow-bert"])
    assert column(run, "rate") == [52.25, 52.25]
    assert column(run, "wall") == [1600000000.25, None]
    assert column(run, "loss") == [11.0, 11.0]


def test_oneflow_models_keeps_the_rank_in_both_spellings():
    run = only("oneflow-models", EXAMPLES["oneflow-models"])
    assert column(run, "rank") == [0, 1]
    assert column(run, "rate") == [160.5, 159.5]
    assert column(run, "wall") == [None, moment("2021-12-01T13:19:02.625")]
    assert run.settings == {"batch_per_device": 8, "global_batch": 16, "precision": "fp32"}
    assert run.top1 == 0.5


def test_wide_and_deep_gives_milliseconds_a_step():
    assert column(only("oneflow-wide-deep", EXAMPLES["oneflow-wide-deep"]), "ms") == [2.25]


def test_libai_passes_midnight_without_a_year():
    run = only("oneflow-libai", EXAMPLES["oneflow-libai"])
    first, second = column(run, "wall")
    assert second - first == 2
    assert (column(run, "rate"), column(run, "seconds")) == ([64, 64], [0.5, 0.5])
    assert (column(run, "loss"), column(run, "lr")) == ([7.25, 7.25], [9.9e-05, 9.9e-05])


def test_paddleclas_2020_tells_the_whole_batch_from_one_devices():
    run = only("paddleclas-2020", PADDLE)
    assert (run.settings["global_batch"], run.settings["batch_per_device"], run.world_size) == (64, 32, 2)
    assert (run.settings["precision"], run.settings["loss_scale"]) == ("amp", "dynamic")
    assert (run.settings["layout"], run.settings["momentum"]) == ("NHWC", 0.9)
    assert run.evaluations == [{"epoch": 0, "top1": 0.375}]
    assert run.summary == {"seconds": 1.5, "rate": 64}


def test_paddleclas_2020_leaves_out_the_means_before_they_begin_anew():
    run = only("paddleclas-2020", PADDLE)
    assert column(run, "step") == [4, 5]
    assert column(run, "rate") == [None, 64]
    assert column(run, "loss") == [7.5, 12.5]


def test_without_a_launcher_the_devices_are_the_whole_batch_over_one_devices():
    alone = re.sub(r".*PADDLE_TRAINERS_NUM.*\n", "", PADDLE).replace("batch_size : 64", "batch_size : 1024")
    assert only("paddleclas-2020", alone).world_size == 32


def test_a_rounded_time_that_fits_two_batches_tells_none():
    vague = PADDLE.replace("4.000s ips: 8.00000", "0.008s ips: 4000.00000")
    assert "batch_per_device" not in only("paddleclas-2020", vague).settings


def test_a_whole_paddleclas_configuration_without_half_precision_is_fp32():
    dump = "".join(
        f"2020-12-14 10:03:04 INFO: {line}\n"
        for line in ("total_images : 1281167", "use_dali : True", "use_mix : False", "valid_interval : 1")
    )
    half = re.sub(r".*use_pure_fp16.*\n", "", PADDLE)
    assert only("paddleclas-2020", dump + half).settings["precision"] == "fp32"
    assert "precision" not in only("paddleclas-2020", half).settings


def test_paddleclas_2_reads_both_of_its_spellings():
    old = only("paddleclas-2.0", EXAMPLES["paddleclas-2.0"])
    assert (column(old, "rate"), column(old, "step"), column(old, "loss")) == ([128], [260], [3.5])
    assert old.settings == {"batch_per_device": 64}
    run = only("paddleclas-2.x", EXAMPLES["paddleclas-2.x"])
    assert column(run, "step") == [0, 10]
    assert column(run, "rate") == [None, 512]
    assert column(run, "loss") == [7.0, 6.5]
    assert column(run, "top1") == [0.25, None]
    assert column(run, "lr") == [0.1, 0.2]
    assert run.settings == {"batch_per_device": 256, "precision": "amp", "framework_version": "2.3.1"}
    assert run.evaluations == [{"epoch": 1, "top1": 0.625}]


def test_paddlenlp_reads_through_colours_and_a_misplaced_colon():
    run = only("paddlenlp", EXAMPLES["paddlenlp"])
    assert column(run, "rate") == [64, 128]
    assert column(run, "step") == [20, 40]
    assert run.settings == {"batch_per_device": 32, "precision": "amp"}
