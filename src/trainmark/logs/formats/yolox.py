"""YOLOX: `epoch: 1/300, iter: 20/47, mem: 1672Mb, iter_time: 0.298s, data_time: 0.003s, total_loss: 7.3, …`.

`iter_time` is a mean since the line before; `batch_size` is of all devices of a machine together.
"""

import re

from trainmark.events import Scope
from trainmark.logs.format import Format, Kind, Rate
from trainmark.logs.formats._common import LOSS, NUMBER, count, fixed

ARGUMENTS = rb"args: Namespace\((?:(?!Namespace\()[^\n]){0,2000}?"
LINE = rb"\bepoch: (?P<epoch>\d+)/\d+, iter: (?P<step>\d+)/\d+, "

FORMAT = Format(
    name="yolox",
    title="YOLOX",
    framework="pytorch",
    sign=re.compile(rb"\bepoch: \d+/\d+, iter: \d+/\d+, [^\n]{0,60}?iter_time: [\d.]+s, "),
    step=re.compile(
        LINE
        + rb"[^\n]{0,60}?iter_time: (?P<seconds>%b)s, data_time: [\d.]+s, " % NUMBER
        + rb"total_loss: (?P<loss>%b), (?:[^\n]{0,200}?\blr: (?P<lr>%b),)?" % (LOSS, NUMBER)
    ),
    rate=Rate("images", Scope.GLOBAL, Kind.SINCE_LAST),
    settings=(
        count("global_batch", ARGUMENTS + rb"\bbatch_size=(?P<value>\d+)[^\n]{0,2000}?\bnum_machines=1\b"),
        count("devices_per_node", ARGUMENTS + rb"\bdevices=(?P<value>\d+)"),
        count("nodes", ARGUMENTS + rb"\bnum_machines=(?P<value>\d+)"),
        fixed("precision", ARGUMENTS + rb"\bfp16=True", "amp"),
    ),
    start=re.compile(rb"trainer:before_train:\d+ - args: Namespace\("),
)
