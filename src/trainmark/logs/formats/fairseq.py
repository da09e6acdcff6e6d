"""fairseq: `… train_inner | epoch 001:  100 / 1234 loss=12.5, …, wps=45678.9, …, num_updates=100, …`.

Also its JSON, `{"epoch": 1, …, "wps": "45678.9", …, "num_updates": "100", …}`. Words count all workers.
"""

import re

from trainmark.events import Scope
from trainmark.logs.format import Format, Kind, Rate, Setting
from trainmark.logs.formats._common import LOSS, NUMBER, count


def field(name: bytes, group: bytes, pattern: bytes) -> bytes:
    """A look ahead to one metric of the line, as `wps=123.4,` or `"wps": "123.4",`."""
    return rb'(?=[^\n]{0,600}?\b%b(?:=|": ")(?P<%b>%b)[",\s])' % (name, group, pattern)


FORMAT = Format(
    name="fairseq",
    title="fairseq",
    framework="pytorch",
    sign=re.compile(rb'\btrain_inner \| [^\n]{0,300}?\bwps(?:=|": ")[\d.]+'),
    step=re.compile(
        rb"\btrain_inner \| "
        + field(rb"num_updates", rb"step", rb"\d+")
        + field(rb"wps", rb"rate", NUMBER)
        + rb"(?:"
        + field(rb"loss", rb"loss", LOSS)
        + rb")?"
        + rb"(?:"
        + field(rb"lr", rb"lr", NUMBER)
        + rb")?"
    ),
    rate=Rate("tokens", Scope.GLOBAL, Kind.SINCE_LAST),
    settings=(
        count("world_size", rb"distributed_world_size'?[=:] ?(?P<value>\d+)"),
        Setting("precision", re.compile(rb"\bfp16'?[=:] ?True"), "fp16"),
    ),
)
