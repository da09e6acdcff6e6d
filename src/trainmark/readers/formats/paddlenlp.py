"""PaddleNLP pretraining: `global step 500, epoch: 0, batch: 499, loss: …, ips: 149.18 sequences/s`.

Rates are of one device. Between the loss and `ips` stands `speed: 4.66 step/s`, later the cost of a batch.
"""

import re

from trainmark.events import Scope
from trainmark.readers.format import Format, Kind, Rate, Setting
from trainmark.readers.formats._printed_batch import from_speed_and_rate
from trainmark.readers.formats.paddleclas_2020 import LAUNCHER

FORMAT = Format(
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
