"""LiBai: `iteration: 99/1000  consumed_samples: 3200  total_loss: …  total_throughput: 1.87 samples/s`.

The time and the throughput average over every step since the run began. The date has no year.
"""

import re

from trainmark.events import Scope
from trainmark.published.readers.format import Clock, Format, Kind, Rate, Setting

FORMAT = Format(
    name="oneflow-libai",
    title="OneFlow LiBai",
    framework="oneflow",
    sign=re.compile(rb"\biteration: \d+/\d+ [^\n]{0,400}\btotal_throughput: [\d.]+ samples/s"),
    step=re.compile(
        rb"(?:\[\d\d/\d\d (?P<wall>\d\d:\d\d:\d\d) [^\]\n]{0,80}\]:[^\n]{0,80}?)?"
        rb"\biteration: (?P<step>\d+)/\d+"
        rb"(?=[^\n]{0,400}?total_throughput: (?P<rate>[\d.]+) samples/s)"
        rb"(?:(?=[^\n]{0,400}?\btotal_loss: (?P<loss>[\d.e+-]+|nan|inf)))?"
        rb"(?:(?=[^\n]{0,400}? time: (?P<seconds>[\d.]+) s/iter))?"
        rb"(?:(?=[^\n]{0,400}? lr: (?P<lr>[\d.e+-]+)))?"
    ),
    rate=Rate("samples", Scope.GLOBAL, Kind.CUMULATIVE),
    clock=Clock.TIME_OF_DAY,
    settings=(
        Setting("world_size", re.compile(rb"\bworld size: (?P<value>\d+)", re.IGNORECASE), convert=int),
        Setting("batch_per_device", re.compile(rb"\btrain_micro_batch_size: (?P<value>\d+)"), convert=int),
        Setting("global_batch", re.compile(rb"\bglobal_batch_size: (?P<value>\d+)"), convert=int),
        Setting("precision", re.compile(rb"\bamp: \{enabled: true\}|\bamp\.enabled=True"), means="amp"),
    ),
)
