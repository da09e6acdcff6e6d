"""MindSpore's model zoo: `epoch[0], iter[100], loss:7.25, 456.78 imgs/sec, lr:0.1`, also with `fps:` before.

The rate counts all devices since the line before.
"""

import re

from trainmark.events import Scope
from trainmark.published.readers.format import Format, Kind, Rate
from trainmark.published.readers.formats._common import LOSS, NUMBER, count

LINE = rb"\bepoch\[(?P<epoch>\d+)\], iter\[(?P<step>\d+)\],? loss: ?(?P<loss>%b), *" % LOSS

FORMAT = Format(
    name="mindspore-fps",
    title="MindSpore model zoo, images a second",
    framework="mindspore",
    sign=re.compile(rb"\bepoch\[\d+\], iter\[\d+\],? loss: ?\S+, *(?:fps: ?)?[\d.]+ imgs/sec"),
    step=re.compile(LINE + rb"(?:fps: ?)?(?P<rate>%b) imgs/sec" % NUMBER),
    rate=Rate("images", Scope.GLOBAL, Kind.SINCE_LAST),
    settings=(count("world_size", rb"'?group_size'?: (?P<value>\d+)"),),
)
