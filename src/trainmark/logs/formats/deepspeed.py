"""DeepSpeed's timer: `… 0/30, RunningAvgSamplesPerSec=230.8, CurrSamplesPerSec=227.4, MemAllocated=…`.

Both count all ranks; the first is a mean since the start, the second that of the last step. Programs that use
DeepSpeed have these lines among their own, and are read by those. The number before is one of steps or, in
old versions, of micro-batches.
"""

import re

from trainmark.events import Scope
from trainmark.logs.format import Format, Kind, Rate
from trainmark.logs.formats._common import NUMBER

PLACE = rb"(?:\d{1,12}/|epoch=\d+/micro_step=\d+/global_step=)"

FORMAT = Format(
    name="deepspeed",
    title="DeepSpeed's throughput timer",
    framework="pytorch",
    sign=re.compile(PLACE + rb"\d+, RunningAvgSamplesPerSec="),
    step=re.compile(
        PLACE + rb"(?P<step>\d+), RunningAvgSamplesPerSec=[\d.]+, CurrSamplesPerSec=(?P<rate>%b), " % NUMBER
    ),
    rate=Rate("samples", Scope.GLOBAL, Kind.INSTANT),
    precedence=-1,
)
