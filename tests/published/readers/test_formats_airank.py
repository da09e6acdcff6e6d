"""AI-Rank's own log lines, and the trainers whose logs were submitted to it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from trainmark.events import Scope
from trainmark.logs.format import Kind
from trainmark.logs.input import clean_blocks
from trainmark.logs.logged_run import LoggedRun
from trainmark.logs.read import read_runs
from trainmark.logs.recognition import formats, recognize

LINES = Path(__file__).with_name("lines")
NAMES = ("airank", "mmsegmentation", "detectron2", "gluoncv", "tsm")
LOGS = Path(__file__).resolve().parents[3].parent / "shared" / "logs" / "airank"
with_real_logs = pytest.mark.skipif(
    not LOGS.is_dir(), reason="the collected logs are not beside this checkout"
)


def text_of(name: str) -> bytes:
    return (LINES / f"{name}.txt").read_bytes()


def read(name: str, text: bytes | None = None) -> LoggedRun:
    blocks = clean_blocks([text_of(name) if text is None else text])
    (run,) = read_runs(formats()[name], blocks, "log")
    return run


def column(run: LoggedRun, name: str) -> list[float]:
    return run.steps[name].tolist()


@pytest.mark.parametrize("name", NAMES)
def test_a_log_submitted_to_airank_is_recognised_as_its_own_trainers(name):
    recognition, _ = recognize(clean_blocks([text_of(name)]), "log")
    assert recognition.format.name == name


@pytest.mark.parametrize("name", NAMES)
def test_a_log_submitted_to_airank_bears_no_other_formats_sign(name):
    assert {other.name for other in formats().values() if other.sign.search(text_of(name))} == {name}


def test_a_trainer_that_also_prints_airanks_lines_is_read_as_the_trainer():
    text = text_of("airank") + 20 * text_of("tsm")
    assert recognize(clean_blocks([text]), "log")[0].format.name == "tsm"
    assert [facts["top1"] for facts in read("tsm", text).evaluations] == [0.25, 75.5]


def test_airank_lines_tell_the_accuracy_by_epoch_and_what_the_submitter_concludes():
    run = read("airank")
    assert (column(run, "epoch"), column(run, "top1")) == ([1, 2], [0.25, 75.5])
    assert column(run, "wall") == [1900000010.5, 1900000020.0]
    assert [facts["top1"] for facts in run.evaluations] == [0.25, 75.5]
    assert run.summary == {"target_quality_time": 20.0, "seconds": 20.5, "rate": 97.5}


def test_airank_lines_claim_no_setting():
    assert read("airank").settings == {}


def test_mmsegmentation_tells_the_seconds_of_an_iteration():
    run = read("mmsegmentation")
    assert (column(run, "step"), column(run, "seconds")) == ([50, 100], [0.3, 0.25])
    assert np.diff(run.steps["wall"]).tolist() == [15.0]
    assert np.isfinite(run.steps["loss"]).tolist() == [True, False]
    assert column(run, "lr") == [0.009995, 0.0099]
    assert run.settings == {"batch_per_device": 2, "world_size": 1}
    assert run.evaluations[0]["top1"] == 0.25


def test_a_distributed_mmsegmentation_run_has_an_unknown_world_size():
    distributed = text_of("mmsegmentation").replace(b"training: False", b"training: True")
    assert "world_size" not in read("mmsegmentation", distributed).settings


def test_detectron2_is_read_over_midnight_and_through_its_colours():
    run = read("detectron2")
    assert (column(run, "step"), column(run, "seconds")) == ([19, 39], [0.1858, 0.2])
    assert np.diff(run.steps["wall"]).tolist() == [4.0]
    assert (column(run, "loss"), column(run, "lr")) == ([6.0, 5.0], [2.5e-05, 5e-05])
    assert run.settings == {
        "world_size": 2,
        "global_batch": 16,
        "learning_rate": 0.02,
        "momentum": 0.9,
        "precision": "amp",
    }


def test_gluoncv_counts_its_batch_over_the_devices_of_one_process():
    run = read("gluoncv")
    assert (column(run, "epoch"), column(run, "step")) == ([0, 1], [9, 19])
    assert (column(run, "rate"), column(run, "lr")) == ([49.591, 34.874], [3.41e-07, 6.82e-07])
    assert run.settings == {
        "global_batch": 16,
        "world_size": 2,
        "learning_rate": 0.001,
        "momentum": 0.9,
        "precision": "fp32",
    }


def test_the_batch_of_gluoncv_under_horovod_is_not_taken_for_the_whole_jobs():
    settings = read("gluoncv", text_of("gluoncv").replace(b"horovod=False", b"horovod=True")).settings
    assert not {"global_batch", "world_size"} & settings.keys()


def test_tsm_tells_the_last_batch_and_not_the_running_mean():
    run = read("tsm")
    assert (column(run, "step"), column(run, "seconds")) == ([0, 32], [2.5, 0.299])
    assert column(run, "loss") == [6.5, 6.25]
    assert formats()["tsm"].rate.kind is Kind.INSTANT
    assert formats()["tsm"].rate.scope is Scope.RANK


@with_real_logs
@pytest.mark.parametrize(
    ("file", "name", "steps", "batch", "world_size", "precision"),
    [
        ("resnet50_log_GPUx1_time2train_ips.log", "dllogger-pytorch", 4500, 256, 1, "amp"),
        ("resnet50_log_GPUx32_time2train_ips.log", "dllogger-pytorch", 1350, 256, 32, "amp"),
        ("HRNet_W18_log_GPUx1_time2train_ips.log", "mmsegmentation", 1520, 2, 1, None),
        ("mask_rcnn_log_GPUx1_time2train_ips.log", "detectron2", 250, 2, 1, "fp32"),
        ("yolov3_log_GPUx1_time2train_ips.log", "gluoncv", 1465, 8, 1, "fp32"),
        ("tsm_log_GPUx1_AMP.log", "tsm", 918, None, None, None),
    ],
)
def test_a_submitted_log_is_read_as_a_person_reads_it(file, name, steps, batch, world_size, precision):
    recognition, blocks = recognize(clean_blocks([(LOGS / file).read_bytes()]), file)
    (run,) = read_runs(recognition.format, blocks, file)
    settings = run.settings
    assert (recognition.format.name, len(run.steps)) == (name, steps)
    assert settings.get("batch_per_device", settings.get("global_batch")) == batch
    assert (settings.get("world_size"), settings.get("precision")) == (world_size, precision)


@with_real_logs
def test_the_submitted_resnet50_logs_hold_every_epochs_accuracy():
    for file, best in (("GPUx1", 76.63), ("GPUx32", 75.9)):
        text = (LOGS / f"resnet50_log_{file}_time2train_ips.log").read_bytes()
        run = read("dllogger-pytorch", text)
        accuracies = [facts["top1"] for facts in run.evaluations]
        assert (len(accuracies), max(accuracies), run.summary["top1"]) == (90, best, best)


@with_real_logs
def test_wall_clock_within_an_epoch_gives_the_rate_worked_out_by_hand():
    """Iterations 20 to 150 of epoch 3 last from 10:19:47.743201 to 10:20:34.684032, on 32 devices."""
    run = read("dllogger-pytorch", (LOGS / "resnet50_log_GPUx32_time2train_ips.log").read_bytes())
    inside = (run.steps["epoch"] == 3) & (run.steps["step"] >= 20)
    wall = run.steps["wall"][inside]
    assert (wall[0] % 3600, wall[-1] % 3600) == pytest.approx((1187.743201, 1234.684032), abs=1e-5)
    assert 130 * 256 * 32 / (wall[-1] - wall[0]) == pytest.approx(22687.28, abs=0.01)


@with_real_logs
def test_the_seconds_that_mmsegmentation_prints_are_those_between_its_lines():
    """Iterations 50 to 950 last from 16:47:40.269 to 16:51:58.402: 258.133 s over 900 iterations."""
    run = read("mmsegmentation", (LOGS / "HRNet_W18_log_GPUx1_time2train_ips.log").read_bytes())
    first = run.steps["step"] <= 950
    assert np.ptp(run.steps["wall"][first]) == pytest.approx(258.133, abs=1e-3)
    assert run.steps["seconds"][first][1:].mean() == pytest.approx(258.133 / 900, rel=0.005)
