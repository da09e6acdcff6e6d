from pathlib import Path

import pytest
from protocol_logs import matrix, place, pytorch

from trainmark.audit import protocols
from trainmark.base.errors import UserError

NAMED = [
    "dlperf-pytorch-rn50",
    "dlperf-pytorch-bert",
    "dlperf-pytorch-examples",
    "dlperf-tensorflow-rn50",
    "dlperf-tensorflow-rn50-time",
    "dlperf-tensorflow-bert",
    "dlperf-tensorflow-bert-time",
    "dlperf-tensorflow2-rn50",
    "dlperf-tensorflow2-rn50-time",
    "dlperf-mxnet",
    "dlperf-mxnet-time",
    "dlperf-gluon",
    "dlperf-mxnet-bert",
    "dlperf-mindspore",
    "dlperf-mindspore-bert",
    "dlperf-paddle",
    "dlperf-paddle-time",
    "dlperf-paddle-bert",
    "dlperf-oneflow",
    "oneflow-report-2020",
    "ai-rank",
    "ngc-pytorch-summary",
    "ngc-tensorflow-summary",
    "ngc-mxnet",
    "mlperf-olympic",
]


def test_every_rule_has_its_name():
    assert set(protocols.names()) == set(NAMED)


@pytest.mark.parametrize("name", NAMED)
def test_every_rule_says_whose_it_is(name):
    assert "/" in protocols.get(name).source
    assert protocols.get(name).title


def test_a_name_that_is_none_is_answered_with_those_there_are(tmp_path):
    with pytest.raises(UserError, match=r"no protocol is named 'dlperf'; there are dlperf-pytorch-rn50"):
        protocols.apply("dlperf", tmp_path)


@pytest.mark.parametrize(
    ("name", "warmup", "train", "sentence"),
    [
        ("dlperf-tensorflow-rn50", 10, 120, "needs --warmup of at least 20, not 10"),
        ("dlperf-mxnet", 20, 20, "needs --train above --warmup"),
        ("dlperf-tensorflow-bert", 25, 120, "multiples of 10"),
        ("dlperf-tensorflow2-rn50", 100, 650, "multiples of 100"),
        ("oneflow-report-2020", 20, 120, "takes no --warmup or --train"),
    ],
)
def test_a_window_that_their_script_refuses_is_refused(tmp_path, name, warmup, train, sentence):
    with pytest.raises(UserError, match=sentence):
        protocols.apply(name, tmp_path, warmup, train)


def test_a_folder_without_logs_is_refused_with_the_names_that_are_read(tmp_path):
    with pytest.raises(UserError, match=r"no logs; .* 1n8g/rn50_b128_fp32_1\.log"):
        protocols.apply("dlperf-mindspore", tmp_path)


def test_a_folder_that_is_not_there_is_one_sentence():
    with pytest.raises(UserError, match="no such file or folder"):
        protocols.apply("ai-rank", Path("nowhere"))


@pytest.mark.parametrize(("case", "name"), [("eight", "rn50_b128_fp32_1.log"), ("1n8g", "resnet.log")])
def test_a_name_that_says_too_little_is_refused(tmp_path, case, name):
    place(tmp_path, case, name, "")
    with pytest.raises(UserError, match="should"):
        protocols.apply("dlperf-pytorch-rn50", tmp_path)


def test_reading_writes_nothing_and_writing_is_their_one_line(tmp_path):
    folder = matrix(tmp_path / "logs", {"1n1g": [400.0]}, pytorch)
    table = protocols.apply("dlperf-pytorch-rn50", folder)
    assert {path.suffix for path in tmp_path.rglob("*.*")} == {".log"}
    protocols.write(table, tmp_path / "logs_result.json")
    assert (tmp_path / "logs_result.json").read_text() == (
        '{"rn50": {"1n1g": {"average_speed": 400.0, "batch_size_per_device": 128, '
        '"median_speed": 400.0, "speedup": 1.0}}}'
    )
