"""PaddleNLP: `global step 500, epoch: 0, batch: 499, loss: …, ips: 149.18 sequences/s`, and others of it.

Rates are of one device. Between the loss and `ips` stands `speed: 4.66 step/s`, later the cost of a batch.
"""

import re

from trainmark.events import Scope
from trainmark.published.readers.format import Format, Kind, Rate, Setting
from trainmark.published.readers.formats._common import LOSS, NUMBER, count
from trainmark.published.readers.formats._printed_batch import from_speed_and_rate
from trainmark.published.readers.formats.paddle.paddleclas_2020 import LAUNCHER

PRETRAINING = Format(
    name="paddlenlp",
    title="PaddleNLP pretraining",
    framework="paddle",
    sign=re.compile(
        rb"\bglobal step \d+, epoch: \d+, batch: \d+, loss: [^\n]{0,200}ips ?: ?[\d.]+ sequences/s"
    ),
    step=re.compile(
        rb"\bglobal step (?P<step>\d+), epoch: (?P<epoch>\d+), batch: \d+, loss: (?P<loss>[\d.]+|nan|inf)"
        rb"(?=[^\n]{0,200}?, ips ?: ?(?P<rate>[\d.]+) sequences/s)"
        rb"(?:(?=[^\n]{0,200}?batch_cost: (?P<seconds>[\d.]+) s))?"
    ),
    rate=Rate("sequences", Scope.RANK, Kind.SINCE_LAST),
    start=re.compile(rb" Configuration Arguments -"),
    settings=(
        *LAUNCHER,
        Setting("batch_per_device", re.compile(rb"'--batch_size', '(?P<value>\d+)'"), convert=int),
        Setting(
            "batch_per_device",
            re.compile(rb"speed: (?P<value>[\d.]+ steps?/s, ips ?: ?[\d.]+) sequences/s"),
            convert=from_speed_and_rate,
        ),
        Setting("precision", re.compile(rb"'--use_amp', 'True'"), means="amp"),
        Setting("precision", re.compile(rb"'--use_amp', 'False'"), means="fp32"),
        Setting("learning_rate", re.compile(rb"'--learning_rate', '(?P<value>[\d.e-]+)'"), convert=float),
    ),
)

# `tobal` is how the program spells it in some versions.
STATIC = Format(
    name="paddlenlp-static",
    title="PaddleNLP pretraining, static graph",
    framework="paddle",
    sign=re.compile(
        rb"\bto[bt]al step: \d+, epoch: \d+, batch: \d+, loss: [^\n]{0,200}ips: [\d.]+ sequences/s"
    ),
    step=re.compile(
        rb"\bto[bt]al step: (?P<step>\d+), epoch: (?P<epoch>\d+), batch: \d+, loss: (?P<loss>%b)" % LOSS
        + rb"(?=[^\n]{0,200}?\bips: (?P<rate>%b) sequences/s)" % NUMBER
    ),
    rate=Rate("sequences", Scope.RANK, Kind.SINCE_LAST),
    start=re.compile(rb"^Namespace\(adam_epsilon=", re.MULTILINE),
    settings=(
        *LAUNCHER,
        count("batch_per_device", rb"Namespace\(adam_epsilon=[^\n]{0,200}?\bbatch_size=(?P<value>\d+)"),
        Setting("precision", re.compile(rb"\buse_pure_fp16=True"), means="fp16"),
        Setting("precision", re.compile(rb"\buse_amp=True"), means="amp"),
        Setting("precision", re.compile(rb"\buse_amp=False"), means="fp32"),
    ),
)

TRANSFORMER = Format(
    name="paddlenlp-transformer",
    title="PaddleNLP machine translation",
    framework="paddle",
    sign=re.compile(rb"\bstep_idx: \d+, epoch: \d+, batch: \d+, avg loss: [^\n]{0,300}?ips: [\d.]+ words/s"),
    step=re.compile(
        rb"(?:\[?(?P<wall>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+)\]?[^\n]{0,40}?)?"
        rb"\bstep_idx: (?P<step>\d+), epoch: (?P<epoch>\d+), batch: \d+, avg loss: (?P<loss>%b),"
        % LOSS
        + rb"(?=[^\n]{0,300}?\bips: (?P<rate>%b) words/s)" % NUMBER
    ),
    rate=Rate("tokens", Scope.RANK, Kind.SINCE_LAST),
    settings=(
        *LAUNCHER,
        Setting("world_size", re.compile(rb"'is_distributed': False"), means=1),
        Setting("precision", re.compile(rb"'use_pure_fp16': True"), means="fp16"),
        Setting("precision", re.compile(rb"'use_amp': True"), means="amp"),
    ),
)

FORMATS = (PRETRAINING, STATIC, TRANSFORMER)
