"""torchtitan: `step: 10  loss: 10.5  grad_norm: 1.2  memory: 68.57GiB(86.69%)  tps: 6,785  tflops: …`.

`tps` (`wps` before) counts the tokens of one device. Every rank that is let to may print the same line.
"""

import re

from trainmark.events import Scope
from trainmark.logs.format import Format, Kind, Rate, Setting
from trainmark.logs.formats._common import LOSS, NUMBER, product, without_groups

MEMORY = rb"memory: +[\d.]+ ?GiB\([\d.]+%\) +"


def first_by_last(text: str) -> int:
    """Sequences of a batch times their length; how often gradients are accumulated stands between."""
    first, *_, last = re.findall(r"\d+", text)
    return int(first) * int(last)


FORMAT = Format(
    name="torchtitan",
    title="torchtitan",
    framework="pytorch",
    sign=re.compile(rb"\bstep: +\d+ +loss: +\S+ [^\n]{0,80}?" + MEMORY + rb"(?:tps|wps): "),
    step=re.compile(
        rb"(?:(?P<wall>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+) [^\n]{0,60}?)?"
        rb"\bstep: +(?P<step>\d+) +loss: +(?P<loss>%b) +[^\n]{0,80}?"
        % LOSS
        + MEMORY
        + rb"(?:tps|wps): +(?P<rate>%b)\s" % NUMBER
    ),
    rate=Rate("tokens", Scope.RANK, Kind.SINCE_LAST),
    settings=(
        product("world_size", rb"Building \d+-D device mesh with [^\n]*?\], \[(?P<value>[\d, ]+)\]"),
        Setting(
            "samples_per_step",
            re.compile(rb"\bglobal batch size (?P<value>\d+, [^\n]{0,60}?sequence length \d+)"),
            convert=first_by_last,
        ),
    ),
    start=re.compile(rb"Building \d+-D device mesh with "),
    prepare=without_groups,
)
