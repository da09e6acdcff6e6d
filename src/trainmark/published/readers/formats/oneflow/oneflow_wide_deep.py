"""OneFlow's wide & deep trainer: `[rank:0] iter: 100/1200, loss: 0.083, latency(ms): 2.23 | time`."""

import re

from trainmark.events import Scope
from trainmark.published.readers.format import Clock, Format, Kind, Rate

FORMAT = Format(
    name="oneflow-wide-deep",
    title="OneFlow Wide & Deep Learning",
    framework="oneflow",
    sign=re.compile(rb"\[rank:\d+\] iter: \d+/\d+, loss: [\d.naif]+, latency\(ms\): [\d.]+"),
    step=re.compile(
        rb"\[rank:(?P<rank>\d+)\] iter: (?P<step>\d+)/\d+, loss: (?P<loss>[\d.]+|nan|inf), "
        rb"latency\(ms\): (?P<ms>[\d.]+)(?: \| (?P<wall>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+))?"
    ),
    rate=Rate("samples", Scope.RANK, Kind.SINCE_LAST),
    clock=Clock.ISO,
)
