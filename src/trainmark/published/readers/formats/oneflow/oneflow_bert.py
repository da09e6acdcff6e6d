"""OneFlow's BERT trainer: `step: 19, total_loss: 11.078, mlm_loss: …, throughput: 52.257 [unix time]`."""

import re

from trainmark.events import Scope
from trainmark.published.readers.format import Clock, Format, Kind, Rate
from trainmark.published.readers.formats.oneflow.oneflow_cnns import HEADER

FORMAT = Format(
    name="oneflow-bert",
    title="OneFlow-Benchmark BERT pretraining",
    framework="oneflow",
    sign=re.compile(rb"\bstep: \d+, total_loss: \S+ mlm_loss: \S+ nsp_loss: \S+ throughput: [\d.]+"),
    step=re.compile(
        rb"\bstep: (?P<step>\d+), total_loss: (?P<loss>[\d.]+|nan|inf), mlm_loss: "
        rb"\S+ nsp_loss: \S+ throughput: (?P<rate>[\d.]+)(?: (?P<wall>\d{10}\.\d+))?"
    ),
    rate=Rate("sequences", Scope.GLOBAL, Kind.SINCE_LAST),
    clock=Clock.UNIX,
    settings=HEADER,
)
