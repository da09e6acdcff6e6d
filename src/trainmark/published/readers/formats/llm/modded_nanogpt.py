"""modded-nanogpt: `step:14/5100 train_loss:6.6428 train_time:498ms step_avg:124.60ms`.

`train_time` is the clock of training alone, evaluations left out; it begins again after ten steps.
"""

import re

from trainmark.events import Scope
from trainmark.published.readers.format import Clock, Format, Kind, Rate
from trainmark.published.readers.formats._common import LOSS

FORMAT = Format(
    name="modded-nanogpt",
    title="modded-nanogpt",
    framework="pytorch",
    sign=re.compile(rb"\bstep:\d+/\d+ (?:(?:train|val)_loss:\S+ )?train_time:\d+ms step_avg:"),
    step=re.compile(
        rb"\bstep:(?P<step>\d+)/\d+ (?:train_loss:(?P<loss>%b) |val_loss:\S+ )?" % LOSS
        + rb"train_time:(?P<wall>\d+)ms step_avg:"
    ),
    rate=Rate("tokens", Scope.GLOBAL, Kind.INSTANT),
    clock=Clock.UNIX_MS,
)
