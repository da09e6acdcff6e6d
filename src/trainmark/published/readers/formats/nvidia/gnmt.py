"""NVIDIA's GNMT: `0: TRAIN [0][10/1369]  Time 0.675 (0.496)  Data …  Tok/s 13009 (12196)  Loss/tok …  LR …`.

The first rate is that of one rank in this step, the one in brackets a mean over the epoch. The rank stands
before; whether each of them prints stands among the arguments.
"""

import re

from trainmark.events import Scope
from trainmark.published.readers.format import Format, Kind, Rate
from trainmark.published.readers.formats._common import LOSS, NUMBER, count, fixed

AVERAGE = rb" \([^)\n]*\)\s+"

FORMAT = Format(
    name="gnmt",
    title="NVIDIA's GNMT for PyTorch",
    framework="pytorch",
    sign=re.compile(rb"\d{1,6}: TRAIN \[\d+\]\[\d+/\d+\]\s+Time [^\n]{0,80}?Tok/s "),
    step=re.compile(
        rb"(?P<rank>\d{1,6}): TRAIN \[(?P<epoch>\d+)\]\[(?P<step>\d+)/\d+\]\s+Time (?P<seconds>[\d.]+)"
        + AVERAGE
        + rb"Data \S+"
        + AVERAGE
        + rb"Tok/s (?P<rate>%b)" % NUMBER
        + AVERAGE
        + rb"Loss/tok (?P<loss>%b)" % LOSS
        + AVERAGE
        + rb"LR (?P<lr>%b)" % NUMBER
    ),
    rate=Rate("tokens", Scope.RANK, Kind.INSTANT, every_rank=True),
    settings=(
        count("world_size", rb"\|\*\*GPUs\*\*\|[^\n]*\n[^\n]*\n\| *(?P<value>\d+) *\|", late=True),
        count("world_size", rb"\bworld_size=(?P<value>\d+)"),
        fixed("precision", rb"\bmath='fp32'", "fp32"),
        fixed("precision", rb"\bmath='(?:fp16|manual_fp16)'", "fp16"),
    ),
)
