"""The FSDP example of AWS: `Batch 1 Loss: 11.64398, Speed: 10.90 samples/sec, lr: 0.000100`, of all ranks."""

import re

from trainmark.events import Scope
from trainmark.logs.format import Format, Kind, Rate
from trainmark.logs.formats._common import LOSS, NUMBER

FORMAT = Format(
    name="aws-fsdp",
    title="AWS's FSDP example",
    framework="pytorch",
    sign=re.compile(rb"\bBatch \d+ Loss: \S+, Speed: [\d.]+ samples/sec, lr: "),
    step=re.compile(
        rb"\bBatch (?P<step>\d+) Loss: (?P<loss>%b), Speed: (?P<rate>%b) samples/sec, lr: (?P<lr>\S+)"
        % (LOSS, NUMBER)
    ),
    rate=Rate("samples", Scope.GLOBAL, Kind.SINCE_LAST),
)
