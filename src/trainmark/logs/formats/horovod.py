"""Horovod's synthetic benchmarks: `Iter #3: 108.2 img/sec per GPU`, then the mean and the total."""

import re

from trainmark.events import Scope
from trainmark.logs.format import Format, Kind, Rate, Setting

FORMAT = Format(
    name="horovod",
    title="Horovod synthetic benchmark",
    framework=None,
    sign=re.compile(rb"Iter #\d+: [\d.]+ img/sec per [A-Z]+|Total img/sec on \d+ [A-Z]+\(s\): "),
    step=re.compile(rb"Iter #(?P<step>\d+): (?P<rate>[\d.]+) img/sec per [A-Z]+"),
    rate=Rate("images", Scope.RANK, Kind.SINCE_LAST),
    settings=(
        Setting("batch_per_device", re.compile(rb"Batch size: (?P<value>\d+)\s"), convert=int),
        Setting("world_size", re.compile(rb"Number of [A-Z]+s: (?P<value>\d+)"), convert=int),
        Setting(
            "world_size", re.compile(rb"Total img/sec on (?P<value>\d+) [A-Z]+\(s\)"), None, int, late=True
        ),
    ),
    start=re.compile(rb"Model: \S+\s+Batch size: \d+"),
    summary=re.compile(rb"Total img/sec on \d+ [A-Z]+\(s\): (?P<rate>[\d.]+)"),
)
