"""NVIDIA's Transformer: `Transformer | epoch 0 | step 10 |avg loss 16.0 |avg tokens … |tokens/s 167003.4 |…`.

Tokens count the whole batch of all devices, since the line before.
"""

import re

from trainmark.events import Scope
from trainmark.published.readers.format import Format, Kind, Rate
from trainmark.published.readers.formats._common import LOSS, NUMBER, count, fixed

FORMAT = Format(
    name="nvidia-transformer",
    title="NVIDIA's Transformer for PyTorch",
    framework="pytorch",
    sign=re.compile(rb"Transformer \| epoch \d+ \| step \d+ \|avg loss [^\n]{0,80}?\|tokens/s "),
    step=re.compile(
        rb"Transformer \| epoch (?P<epoch>\d+) \| step (?P<step>\d+) \|avg loss (?P<loss>%b) \|" % LOSS
        + rb"[^\n]{0,60}?\|tokens/s (?P<rate>%b) " % NUMBER
    ),
    rate=Rate("tokens", Scope.GLOBAL, Kind.SINCE_LAST),
    settings=(
        count("world_size", rb"\bWORLD_SIZE: (?P<value>\d+)"),
        count("world_size", rb"\bdistributed_world_size=(?P<value>\d+)"),
        fixed("precision", rb" --(?:fp16|amp)\b", "amp"),
    ),
)
