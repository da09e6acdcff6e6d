"""NeMo 2: `Training epoch 1, iteration 10/999 | … | global_batch_size: 512 | … | train_step_timing in s: 9`.

NeMo 1 draws Lightning's bar, which is read as such.
"""

import re

from trainmark.events import Scope
from trainmark.logs.format import Format, Kind, Rate
from trainmark.logs.formats._common import LOSS, NUMBER, count

LINE = rb"Training epoch \d+, iteration \d+/\d+ \| "

FORMAT = Format(
    name="nemo",
    title="NeMo 2",
    framework="pytorch",
    sign=re.compile(LINE + rb"[^\n]{0,300}?train_step_timing in s: "),
    step=re.compile(
        LINE
        + rb"(?=[^\n]{0,400}?\bglobal_step: (?P<step>\d+) \|)"
        + rb"(?=[^\n]{0,400}?\btrain_step_timing in s: (?P<seconds>%b)\s)" % NUMBER
        + rb"(?:(?=[^\n]{0,400}?\bglobal_batch_size: (?P<step_samples>\d+) \|))?"
        + rb"(?:(?=[^\n]{0,400}?\breduced_train_loss: (?P<loss>%b) \|))?" % LOSS
        + rb"(?:(?=[^\n]{0,400}?\blr: (?P<lr>%b) \|))?" % NUMBER
    ),
    rate=Rate("samples", Scope.GLOBAL, Kind.INSTANT),
    settings=(count("world_size", rb"GLOBAL_RANK: \d+, MEMBER: \d+/(?P<value>\d+)"),),
)
