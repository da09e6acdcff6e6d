"""MLX LM: `Iter 10: Train loss 2.1, Learning Rate 1.000e-05, It/sec 0.5, Tokens/sec 123.4, …`."""

import re

from trainmark.events import Scope
from trainmark.logs.format import Format, Kind, Rate
from trainmark.logs.formats._common import LOSS, NUMBER

LINE = rb"\bIter (?P<step>\d+): Train loss (?P<loss>%b), (?:Learning Rate (?P<lr>%b), )?" % (LOSS, NUMBER)

FORMAT = Format(
    name="mlx-lm",
    title="MLX LM",
    framework="mlx",
    sign=re.compile(rb"\bIter \d+: Train loss [\d.]+, [^\n]{0,40}It/sec [\d.]+, Tokens/sec "),
    step=re.compile(LINE + rb"It/sec [\d.]+, Tokens/sec (?P<rate>%b)(?=[,\s])" % NUMBER),
    rate=Rate("tokens", Scope.GLOBAL, Kind.SINCE_LAST),
)
