"""torchtune's metrics on disk: `Step 10 | loss:1.23 lr:2e-05 tokens_per_second_per_gpu:1234.5 …`."""

import re

from trainmark.events import Scope
from trainmark.logs.format import Format, Kind, Rate
from trainmark.logs.formats._common import LOSS, NUMBER, count

FORMAT = Format(
    name="torchtune",
    title="torchtune",
    framework="pytorch",
    sign=re.compile(rb"^Step \d+ \| [^\n]{0,200}?tokens_per_second_per_gpu:", re.MULTILINE),
    step=re.compile(
        rb"^Step (?P<step>\d+) \| (?:loss:(?P<loss>%b) )?(?:lr:(?P<lr>%b) )?" % (LOSS, NUMBER)
        + rb"[^\n]{0,200}?tokens_per_second_per_gpu:(?P<rate>%b)\s" % NUMBER,
        re.MULTILINE,
    ),
    rate=Rate("tokens", Scope.RANK, Kind.INSTANT),
    settings=(count("world_size", rb"--nproc[-_]per[-_]node[= ](?P<value>\d+)"),),
)
