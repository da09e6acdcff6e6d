"""The logs of benchmark programs and training libraries: invented lines for every group and trap."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from trainmark.events import Scope
from trainmark.logs.format import Kind
from trainmark.logs.input import clean_blocks
from trainmark.logs.logged_run import LoggedRun
from trainmark.logs.read import read_runs
from trainmark.logs.recognition import formats, recognize

LINES = Path(__file__).with_name("lines")
NAMES = ("tf-cnn-benchmarks", "torch-examples", "timm", "hf-trainer", "lightning", "keras", "horovod")


def read(name: str, text: str) -> list[LoggedRun]:
    return list(read_runs(formats()[name], clean_blocks([text.encode()]), "log"))


def example(name: str) -> str:
    return (LINES / f"{name}.txt").read_text()


def only(name: str, text: str | None = None) -> LoggedRun:
    (run,) = read(name, example(name) if text is None else text)
    return run


def column(run: LoggedRun, name: str) -> list[float | None]:
    """The column with None for what a line does not say."""
    return [None if math.isnan(value) else value for value in run.steps[name]]


@pytest.mark.parametrize("name", NAMES)
def test_each_tool_is_recognised_and_bears_no_other_formats_sign(name):
    blocks = list(clean_blocks([example(name).encode()]))
    assert recognize(blocks, "log")[0].format.name == name
    assert {other for other, format in formats().items() if format.sign.search(b"".join(blocks))} == {name}


@pytest.mark.parametrize(
    ("name", "scope", "kind", "every_rank"),
    [
        ("tf-cnn-benchmarks", Scope.GLOBAL, Kind.CUMULATIVE, False),
        ("torch-examples", Scope.RANK, Kind.INSTANT, True),
        ("timm", Scope.GLOBAL, Kind.INSTANT, False),
        ("lightning", Scope.RANK, Kind.CUMULATIVE, False),
        ("keras", Scope.GLOBAL, Kind.CUMULATIVE, False),
        ("horovod", Scope.RANK, Kind.SINCE_LAST, False),
    ],
)
def test_each_tool_says_what_its_rate_counts(name, scope, kind, every_rank):
    rate = formats()[name].rate
    assert (rate.scope, rate.kind, rate.every_rank) == (scope, kind, every_rank)


@pytest.mark.parametrize(
    "name", ["tf-cnn-benchmarks", "torch-examples", "timm", "hf-trainer", "keras", "horovod"]
)
def test_two_runs_in_one_file_are_parted(name):
    once = len(only(name).steps)
    assert [len(run.steps) for run in read(name, example(name) * 2)] == [once, once]


def test_tf_cnn_benchmarks_reads_running_means_with_and_without_a_time():
    run = only("tf-cnn-benchmarks")
    assert column(run, "step") == [1, 10, 20]
    assert column(run, "rate") == [100.5, 128, 256]
    assert column(run, "loss") == [7.875, math.inf, 7.5]
    assert column(run, "wall") == [1600000001, None, None]
    assert column(run, "top1") == [None, None, 0.25]
    assert run.summary == {"rate": 250.25}


def test_tf_cnn_benchmarks_says_its_batches_devices_and_layout():
    assert only("tf-cnn-benchmarks").settings == {
        "global_batch": 64,
        "batch_per_device": 32,
        "world_size": 2,
        "framework_version": "1.15",
        "layout": "NCHW",
        "device": "Some GPU",
    }


def test_the_examples_of_pytorch_keep_the_tens_of_a_time():
    run = only("torch-examples")
    assert column(run, "seconds") == [12.054, 0.36]
    assert column(run, "step") == [0, 10]
    assert column(run, "epoch") == [2, 2]
    assert column(run, "loss") == [6.9828, math.inf]
    assert column(run, "top1") == [0.78, 1.5]
    assert run.evaluations == [{"top1": 76.125, "top5": 92.875}]
    assert run.settings == {}


def test_timm_reads_the_step_and_not_the_mean_beside_it():
    run = only("timm")
    assert column(run, "rate") == [16, 400]
    assert column(run, "seconds") == [8, 0.32]
    assert column(run, "loss") == [6.875, 6.75]
    assert column(run, "lr") == [1e-05, 2e-05]
    assert run.settings == {"global_batch": 128, "world_size": 4, "precision": "amp"}


def test_only_the_last_line_of_a_timm_evaluation_is_its_result():
    run = only("timm")
    assert run.evaluations == [{"top1": 0.125, "top5": 3.25}]
    assert run.summary == {"top1": 0.125}


def test_hugging_face_numbers_may_be_strings():
    run = only("hf-trainer")
    assert [loss for loss in column(run, "loss") if loss is not None] == [2.5, 2.25]
    assert [rate for rate in column(run, "lr") if rate is not None] == [2.5e-05, 1e-05]
    assert run.summary == {"seconds": 116.5, "rate": 6.875}
    assert run.top1 == 0.75


def test_hugging_face_steps_and_times_are_those_of_the_training_bar():
    run = only("hf-trainer")
    assert column(run, "step") == [10, 10, 20, 20]
    assert column(run, "wall") == [5, 5, 3610, 3610]
    assert run.settings == {"batch_per_device": 8, "samples_per_step": 32, "global_batch": 32}


def test_with_gradient_accumulation_the_whole_batch_is_that_of_a_step_and_tells_no_devices():
    text = example("hf-trainer").replace("Accumulation steps = 1", "Accumulation steps = 4")
    assert only("hf-trainer", text).settings == {"batch_per_device": 8, "samples_per_step": 32}


def test_lightning_turns_paces_to_seconds_and_keeps_the_last_state_of_a_bar():
    run = only("lightning")
    assert column(run, "step") == [1, 2, 1]
    assert column(run, "epoch") == [0, 0, 1]
    assert column(run, "seconds") == [8, 0.25, 0.5]
    assert column(run, "loss") == [10.5, 9.5, math.inf]
    assert run.settings == {"precision": "amp", "world_size": 4}


def test_a_lightning_bar_drawn_over_itself_is_read_like_lines():
    assert column(only("lightning", example("lightning").replace("\n", "\r")), "seconds") == [8, 0.25, 0.5]


def test_a_bar_drawn_again_in_the_next_block_is_still_one_bar():
    bar = b"Epoch 0:   6%|#         | 1/18 [00:08<02:29,  8.00s/it"
    runs = list(read_runs(formats()["lightning"], [bar + b"]\n", bar + b", loss=3.5]\n"], "log"))
    assert column(runs[0], "loss") == [3.5]


def test_keras_times_are_milliseconds_whatever_their_unit():
    run = only("keras")
    assert column(run, "step") == [12, 100, 50, 100]
    assert column(run, "epoch") == [1, 1, 2, 2]
    assert column(run, "ms") == [None, 50, 0.25, 2000]
    assert column(run, "loss") == [0.75, 0.5, 0.25, 0.125]
    assert column(run, "top1") == [0.25, 0.5, 0.75, None]
    assert run.evaluations == [{"epoch": 1, "top1": 0.375}]


def test_old_keras_counts_samples():
    run = only("keras", "60000/60000 [====] - 12s 200us/sample - loss: 0.25 - acc: 0.5\n")
    assert (column(run, "rate"), column(run, "ms")) == ([5000], [None])


def test_horovod_reads_each_iteration_and_its_total():
    run = only("horovod")
    assert column(run, "rate") == [108.5, 107.5]
    assert run.settings == {"batch_per_device": 32, "world_size": 4}
    assert run.summary == {"rate": 432}
