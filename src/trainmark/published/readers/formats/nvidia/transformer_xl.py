"""Transformer-XL: `| epoch   1 step    10 | batches … | lr … | ms/batch 400.0 | tok/s   1920 | loss …`.

NVIDIA's prints the tokens of all devices since the line before; the original has `ms/batch` alone.
"""

import re

from trainmark.events import Scope
from trainmark.published.readers.format import Format, Kind, Rate
from trainmark.published.readers.formats._common import LOSS, NUMBER

FORMAT = Format(
    name="transformer-xl",
    title="Transformer-XL",
    framework="pytorch",
    sign=re.compile(rb"\| +epoch +\d+ +step +\d+ \| +(?:batches +)?\d+[^\n]{0,60}?\| +ms/batch +[\d.]+ \|"),
    step=re.compile(
        rb"\| +epoch +(?P<epoch>\d+) +step +(?P<step>\d+) \| [^\n]{0,60}?\| +lr +(?P<lr>%b) " % NUMBER
        + rb"\| +ms/batch +(?P<ms>%b) \|(?: +tok/s +(?P<rate>%b) \|)?" % (NUMBER, NUMBER)
        + rb" +loss +(?P<loss>%b) \|" % LOSS
    ),
    rate=Rate("tokens", Scope.GLOBAL, Kind.SINCE_LAST),
    summary=re.compile(rb"Training throughput: (?P<rate>[\d.]+) tok/s"),
)
