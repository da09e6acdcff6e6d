"""llm.c: `step    2/32000 | loss 10.539 (+nanz)| norm … | lr … | 2747.19 ms | 47.4% bf16 MFU | 381690 tok/s`.

The rate counts all processes; it is a moving average that forgets within some twenty steps.
"""

import re

from trainmark.events import Scope
from trainmark.published.readers.format import Format, Kind, Rate
from trainmark.published.readers.formats._common import LOSS, NUMBER, count

LINE = rb"\bstep +(?P<step>\d+)/\d+ \| (?:train )?loss (?P<loss>%b) " % LOSS

FORMAT = Format(
    name="llm.c",
    title="llm.c",
    framework=None,
    sign=re.compile(
        rb"\bstep +\d+/\d+ \| (?:train )?loss \S+ [^\n]{0,160}?\| +[\d.]+ ms \|[^\n]{0,60}? tok/s"
    ),
    step=re.compile(
        LINE + rb"[^\n]{0,160}?\| +(?P<ms>%b) ms \|[^\n]{0,60}?\| +(?P<rate>%b) tok/s" % (NUMBER, NUMBER)
    ),
    rate=Rate("tokens", Scope.GLOBAL, Kind.INSTANT),
    settings=(
        count("world_size", rb"\bnum_processes=(?P<value>\d+)"),
        count("samples_per_step", rb"\btotal_batch_size=(?P<value>\d+)"),
    ),
    start=re.compile(rb"batch_size B=\d+ \* seq_len T=\d+"),
)
