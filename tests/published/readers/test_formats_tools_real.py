"""Benchmark programs and training libraries as others ran them, against what a person reads in their logs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from trainmark.logs.input import clean_blocks
from trainmark.logs.logged_run import LoggedRun
from trainmark.logs.read import read_runs
from trainmark.logs.recognition import recognize
from trainmark.measure.log_figure import LogFacts, logged_figure

LOGS = Path(__file__).resolve().parents[3].parent / "shared" / "logs"
pytestmark = pytest.mark.skipif(not LOGS.is_dir(), reason="the collected logs are not beside this checkout")

TF_CNN = {
    # the beginning of a file's name: batch of a device, devices, first and last loss
    "7502-A100-PCIE": (448, 4, 7.858, 7.465),
    "7502-RTX_A6000_XLA_TF1_15.logs__syn-replicated-fp16-1gpus": (512, 1, 7.948, 7.689),
    "7502-RTX_A6000_XLA_TF1_15.logs__syn-replicated-fp32-4gpus": (256, 4, 7.854, 7.544),
    "7742-1xA100": (448, 1, 7.881, 7.717),
    "7742-4xA100": (448, 4, 7.841, 7.478),
}


def real(path: Path) -> LoggedRun:
    recognition, blocks = recognize(clean_blocks([path.read_bytes()]), path.name)
    (run,) = read_runs(recognition.format, blocks, path.name)
    return run


def throughput(run: LoggedRun) -> float | None:
    return logged_figure(run.columns(), LogFacts(**run.facts())).throughput


def tf_cnn(beginning: str) -> Path:
    (path,) = (LOGS / "tf_cnn_benchmarks").glob(f"{beginning}*")
    return path


@pytest.mark.parametrize("beginning", TF_CNN)
def test_a_real_tf_cnn_log_says_what_its_words_say(beginning):
    run = real(tf_cnn(beginning))
    batch, devices, first, last = TF_CNN[beginning]
    assert (run.format.name, len(run.steps), run.steps["step"][-1]) == ("tf-cnn-benchmarks", 11, 100)
    assert (run.settings["batch_per_device"], run.world_size) == (batch, devices)
    assert run.settings["global_batch"] == batch * devices
    assert "precision" not in run.settings
    assert (run.steps["loss"][0], run.steps["loss"][-1]) == (first, last)


@pytest.mark.parametrize("beginning", TF_CNN)
def test_tf_cnn_is_as_fast_as_99_steps_over_the_seconds_of_its_clock(beginning):
    run = real(tf_cnn(beginning))
    stamps = re.findall(r"images/sec: .* (\d{10})$", tf_cnn(beginning).read_text(errors="replace"), re.M)
    seconds = int(stamps[-1]) - int(stamps[0])
    # The clock shows whole seconds: either end may be off by one half.
    assert throughput(run) == pytest.approx(99 * run.settings["global_batch"] / seconds, rel=1.1 / seconds)


@pytest.mark.parametrize(
    ("name", "format", "lines", "first", "last"),
    [
        ("timm/timm_resnet50_habana.log", "timm", 2, 6.86, 6.77),
        ("hf_trainer/hf_trainer_numeric.log", "hf-trainer", 2, 2.5976, 2.5744),
        ("lightning/lightning_issue4225.log", "lightning", 2, 10.473, 10.473),
        ("pytorch_examples/dlperf_readme_2n8g_4n8g.log", "torch-examples", 28, 6.9828, 9.9896),
        ("tf_cnn_benchmarks/horovod_multi_rank__horovod_issue466.log", "tf-cnn-benchmarks", 5, 8.734, 8.739),
    ],
)
def test_a_real_excerpt_says_what_its_words_say(name, format, lines, first, last):
    run = real(LOGS / name)
    assert (run.format.name, len(run.steps)) == (format, lines)
    assert (run.steps["loss"][0], run.steps["loss"][-1]) == (first, last)


def test_the_batch_of_the_timm_log_is_its_rate_times_its_seconds():
    assert real(LOGS / "timm" / "timm_resnet50_habana.log").settings == {"global_batch": round(400.32 * 0.32)}


def test_the_lightning_bar_is_as_slow_as_it_says():
    assert real(LOGS / "lightning" / "lightning_issue4225.log").steps["seconds"].tolist() == [8.77, 5.82]


def test_horovods_four_devices_are_four_times_one():
    run = real(LOGS / "horovod" / "pytorch_synthetic__issue712.log")
    assert (len(run.steps), run.world_size, run.settings["batch_per_device"]) == (2, 4, 32)
    assert throughput(run) == pytest.approx(4 * 2 / (1 / 108.3 + 1 / 107.3))
    assert run.summary == {"rate": 432.8}
