"""Every real log that is at hand is read, and taken for what it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainmark.base.streams import SourceRefusal
from trainmark.logs.read import ParsedLog, parsed_logs
from trainmark.measure.log_figure import LogFacts, logged_figure

LOGS = Path(__file__).resolve().parents[3].parent / "shared" / "logs"
FILES = sorted(path for path in LOGS.rglob("*") if path.is_file() and path.suffix != ".tsv")
pytestmark = pytest.mark.skipif(not FILES, reason="the collected logs are not beside this checkout")

# By folder, how the names of the formats begin that may be found there.
EXPECTED = {
    "airank": ("airank", "mmseg", "detectron2", "gluoncv", "tsm", "dllogger-pytorch", "nvidia-transformer"),
    "dllogger": ("dllogger",),
    "hf_trainer": ("hugging", "hf"),
    "horovod": ("horovod",),
    "lightning": ("lightning",),
    "mindspore": ("mindspore",),
    "mllog": ("mllog", "mlperf"),
    "mxnet_dllogger": ("ngc-mxnet", "dllogger-mxnet"),
    "oneflow": ("oneflow",),
    "paddle": ("paddleclas",),
    "paddle_bert": ("paddlenlp",),
    "pytorch_bert": ("ngc-bert-pytorch",),
    "pytorch_dllogger": ("dllogger-pytorch",),
    "pytorch_examples": ("torch-examples",),
    "tensorflow_dllogger": ("dllogger-tensorflow",),
    "tf_bert": ("ngc-bert-tensorflow",),
    "tf_cnn_benchmarks": ("tf-cnn-benchmarks",),
    "timm": ("timm",),
}
# A single newline.
NOT_LOGS = {"base_bs32_fp32_gpu32.log"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_real_log_is_read_and_recognised(path):
    (log,) = parsed_logs([str(path)])
    if path.name in NOT_LOGS:
        assert isinstance(log, SourceRefusal)
        return
    assert isinstance(log, ParsedLog), log
    assert log.format.name.startswith(EXPECTED[path.parent.name])
    for run in log.runs:
        figure = logged_figure(run.columns(), LogFacts(**run.facts()))
        assert figure.throughput is None or figure.throughput > 0


@pytest.mark.parametrize(
    ("name", "rates"),
    [
        # The first two as worked out from the time stamps by hand. The third as it came out, within 0.1 % of
        # its printed rates (their median 1,378.6 on one device, their harmonic mean 9,233.9 on eight).
        ("pytorch_dllogger/pytorch_gpu1_fp32_bs128.txt", [367.4]),
        ("tensorflow_dllogger/tf_gpu8_fp32_bs128.txt", [3101.7]),
        ("mxnet_dllogger/mxnet_gpu1_gpu8_amp_bs128.txt", [1379.4, 9228.1]),
    ],
)
def test_the_figure_of_a_real_log_is_its_wall_clock(name, rates):
    (log,) = parsed_logs([str(LOGS / name)])
    assert isinstance(log, ParsedLog)
    figures = [logged_figure(run.columns(), LogFacts(**run.facts())) for run in log.runs]
    assert [figure.throughput for figure in figures] == [pytest.approx(rate, rel=0.002) for rate in rates]
