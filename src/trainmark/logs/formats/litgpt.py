"""LitGPT: `Epoch 1 | iter 2 step 1 | loss train: 1.660, val: n/a | iter time: 548.72 ms (step)`.

An iteration is a micro-batch on each device; several of them make a step of the optimiser. What is counted
here are iterations.
"""

import re

from trainmark.events import Scope
from trainmark.logs.format import Format, Kind, Rate
from trainmark.logs.formats._common import LOSS, NUMBER, count

FORMAT = Format(
    name="litgpt",
    title="LitGPT",
    framework="pytorch",
    sign=re.compile(rb"\biter \d+ step \d+ \| loss train: [^\n]{1,80}?\| iter time: [\d.]+ ms"),
    step=re.compile(
        rb"\biter (?P<step>\d+) step \d+ \| loss train: (?P<loss>%b),[^\n]{1,60}?\| " % LOSS
        + rb"iter time: (?P<ms>%b) ms" % NUMBER
    ),
    rate=Rate("samples", Scope.GLOBAL, Kind.INSTANT),
    settings=(
        count("batch_per_device", rb"\bmicro_batch_size=(?P<value>\d+)"),
        count("devices_per_node", rb"'devices': (?P<value>\d+)"),
        count("nodes", rb"'num_nodes': (?P<value>\d+)"),
    ),
)
