"""HRNet, PIDNet and kin: `Epoch: [0/520] Iter:[10/247], Time: 1.21, lr: [0.0002], Loss: 7.427338, …`.

The time is a mean over the epoch so far, printed with two decimals; the batch is of one device.
"""

import re

from trainmark.events import Scope
from trainmark.logs.format import Format, Kind, Rate
from trainmark.logs.formats._common import LOSS, NUMBER, count, listed

FORMAT = Format(
    name="hrnet",
    title="HRNet, PIDNet and kin",
    framework="pytorch",
    sign=re.compile(rb"Epoch: \[\d+/\d+\] Iter:\[\d+/\d+\], Time: [\d.]+, lr: "),
    step=re.compile(
        rb"Epoch: \[(?P<epoch>\d+)/\d+\] Iter:\[(?P<step>\d+)/\d+\], Time: (?P<seconds>%b), " % NUMBER
        + rb"lr: \[?[^\n]{1,200}?, Loss: (?P<loss>%b)[,\s]" % LOSS
    ),
    rate=Rate("images", Scope.RANK, Kind.CUMULATIVE),
    settings=(
        count("batch_per_device", rb"\nTRAIN:\n(?:  [^\n]*\n){0,40}?  BATCH_SIZE_PER_GPU: (?P<value>\d+)"),
        listed("world_size", rb"\nGPUS: \((?P<value>[\d, ]+)\)"),
    ),
)
