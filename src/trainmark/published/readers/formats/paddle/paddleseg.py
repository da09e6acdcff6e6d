"""PaddleSeg: `[TRAIN] epoch: 1, iter: 10/200, loss: 1.6422, …, batch_cost: 0.32, …, ips: 12.34 samples/sec`.

Costs and rates are of one device, since the line before.
"""

import re

from trainmark.events import Scope
from trainmark.published.readers.format import Format, Kind, Rate
from trainmark.published.readers.formats._common import LOSS, NUMBER, count
from trainmark.published.readers.formats.paddle.paddleclas_2020 import LAUNCHER

FORMAT = Format(
    name="paddleseg",
    title="PaddleSeg",
    framework="paddle",
    sign=re.compile(rb"\[TRAIN\] epoch: \d+, iter: \d+/\d+, loss: [^\n]{0,200}?ips: [\d.]+ samples/sec"),
    step=re.compile(
        rb"(?P<wall>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) \[INFO\]\s+"
        rb"\[TRAIN\] epoch: \d+, iter: (?P<step>\d+)/\d+, loss: (?P<loss>%b), (?:lr: (?P<lr>%b), )?"
        % (LOSS, NUMBER)
        + rb"[^\n]{0,200}?\bips: (?P<rate>%b) samples/sec" % NUMBER
    ),
    rate=Rate("samples", Scope.RANK, Kind.SINCE_LAST),
    settings=(
        count("world_size", rb"\bGPUs used: (?P<value>\d+)"),
        *LAUNCHER,
        count("batch_per_device", rb"\nbatch_size: (?P<value>\d+)"),
    ),
    start=re.compile(rb"-Environment Information-"),
    evaluation=re.compile(rb"\[EVAL\] [^\n]{0,60}?mIoU: (?P<top1>[\d.]+)"),
)
