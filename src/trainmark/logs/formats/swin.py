"""Swin Transformer and kin: `INFO Train: [0/300][10/1251]  eta 0:10:00 lr …  time 0.41 (0.83)  loss …`.

The first time is of that iteration on rank 0. `BATCH_SIZE` in the dumped configuration is of one device.
"""

import re

from trainmark.events import Scope
from trainmark.logs.format import Format, Kind, Rate
from trainmark.logs.formats._common import LOSS, NUMBER, count, fixed

LINE = rb"INFO:? +Train: \[(?P<epoch>\d+)/\d+\]\[ *(?P<step>\d+)/\d+\]\s+eta [^\n]{0,120}?"

FORMAT = Format(
    name="swin",
    title="Swin Transformer and kin",
    framework="pytorch",
    sign=re.compile(rb"INFO:? +Train: \[\d+/\d+\]\[ *\d+/\d+\]\s+eta [^\n]{0,120}?\btime [\d.]+ \("),
    step=re.compile(LINE + rb"\btime (?P<seconds>%b) \([^)\n]*\)\s+loss (?P<loss>%b) \(" % (NUMBER, LOSS)),
    rate=Rate("images", Scope.RANK, Kind.INSTANT),
    settings=(
        count("batch_per_device", rb"^DATA:\n(?:  [^\n]*\n)*?  BATCH_SIZE: (?P<value>\d+)(?m:$)"),
        count("batch_per_device", rb'"BATCH_SIZE": (?P<value>\d+)'),
        count("world_size", rb"RANK and WORLD_SIZE in environ: \d+/(?P<value>\d+)"),
        fixed("precision", rb"AMP_ENABLE:? ?\"?:? true", "amp"),
    ),
    start=re.compile(rb"INFO:? +Start training"),
    evaluation=re.compile(rb"INFO:? +\* Acc@1 (?P<top1>[\d.]+) Acc@5 (?P<top5>[\d.]+)"),
)
