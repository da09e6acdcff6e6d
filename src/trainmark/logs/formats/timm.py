"""timm: `Train: 0 [  50/73 ( 70%)]  Loss: 6.77 (6.83)  Time: 0.320s,  400.32/s  (0.470s,  272.39/s)  LR: …`.

The first time and rate are of this step, the bracketed ones means over the epoch. The rate counts all ranks.
"""

import re

from trainmark.events import Scope
from trainmark.logs.format import Format, Kind, Rate, Setting
from trainmark.logs.formats._common import batch_from_time_and_rate

FORMAT = Format(
    name="timm",
    title="timm (pytorch-image-models)",
    framework="pytorch",
    sign=re.compile(rb"Train: \d+ \[ *\d+/\d+ \( *\d+%\)\] [^\n]{0,60}Time: +[\d.]+s, +[\d.]+/s +\("),
    step=re.compile(
        rb"Train: (?P<epoch>\d+) \[ *(?P<step>\d+)/\d+ \( *\d+%\)\] +Loss: +(?P<loss>[\d.e+-]+|nan|inf) "
        rb"[^\n]{0,60}?Time: +(?P<seconds>[\d.]+)s, +(?P<rate>[\d.]+)/s +\([^)\n]*\)"
        rb"(?: +LR: (?P<lr>[\d.e+-]+))?"
    ),
    rate=Rate("images", Scope.GLOBAL, Kind.INSTANT),
    settings=(
        Setting(
            "global_batch",
            re.compile(rb"Train: [^\n]{0,100}?Time: +(?P<value>[\d.]+s, +[\d.]+)/s"),
            convert=batch_from_time_and_rate,
        ),
        Setting("world_size", re.compile(rb"Process \d+, total (?P<value>\d+)"), convert=int),
        Setting("world_size", re.compile(rb"Training with a single process on 1 "), means=1),
        Setting("precision", re.compile(rb"AMP[^\n]{0,40}Training in mixed precision"), means="amp"),
        Setting("precision", re.compile(rb"AMP not enabled\. Training in float32"), means="fp32"),
    ),
    start=re.compile(rb"Training (?:in distributed mode|with a single process)"),
    evaluation=re.compile(
        rb"Test[^\n\[]{0,40}: \[ *(\d+)/\1\] [^\n]{0,100}?Acc@1: +[\d.]+ \( *(?P<top1>[\d.]+)\)"
        rb"(?:  +Acc@5: +[\d.]+ \( *(?P<top5>[\d.]+)\))?"
    ),
    summary=re.compile(rb"\*\*\* Best metric: (?P<top1>[\d.]+)"),
)
