"""nanoGPT: `iter 10: loss 4.1039, time 1434.03ms, mfu 0.01%`.

The time is of that iteration alone. One that follows a line of evaluation holds it, and is left out.
"""

import re

from trainmark.events import Scope
from trainmark.published.readers.format import Format, Kind, Rate
from trainmark.published.readers.formats._common import LOSS, NUMBER, count, without_groups

EVALUATED = re.compile(
    rb"(step (\d+): train loss [^\n]*\n(?:saving checkpoint[^\n]*\n)?)iter \2: (loss [^\n,]+), time [^\n]*"
)


def without_evaluations(block: bytes) -> bytes:
    return EVALUATED.sub(rb"\1iter \2 with its evaluation: \3", without_groups(block))


FORMAT = Format(
    name="nanogpt",
    title="nanoGPT",
    framework="pytorch",
    sign=re.compile(rb"\biter \d+: loss [\d.]+, time [\d.]+ms"),
    step=re.compile(rb"\biter (?P<step>\d+): loss (?P<loss>%b), time (?P<ms>%b)ms(?=[,\s])" % (LOSS, NUMBER)),
    rate=Rate("tokens", Scope.GLOBAL, Kind.INSTANT),
    settings=(count("samples_per_step", rb"tokens per iteration will be: (?P<value>\d+)\s"),),
    prepare=without_evaluations,
)
