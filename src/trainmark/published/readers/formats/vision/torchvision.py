"""torchvision's references: `Epoch: [0]  [ 10/1252]  eta: 0:12:34  lr: 0.1  img/s: 512.3  loss: … time: …`.

DeiT, MAE and others print the same without `img/s`. Time and rate are means over some twenty steps of rank 0,
which alone prints; the batch and the ranks stand among the arguments, on one line or one a line.
"""

import re

from trainmark.events import Scope
from trainmark.published.readers.format import Format, Kind, Rate
from trainmark.published.readers.formats._common import LOSS, NUMBER, count, fixed

ARGUMENTS = rb"\bNamespace\((?:(?!Namespace\()[^)]){0,6000}?"

FORMAT = Format(
    name="torchvision",
    title="torchvision's references, DeiT and kin",
    framework="pytorch",
    sign=re.compile(rb"Epoch: \[\d+\] +\[ *\d+/\d+\] +eta: [^\n]{0,400}? time: [\d.]+ +data: "),
    step=re.compile(
        rb"Epoch: \[(?P<epoch>\d+)\] +\[ *(?P<step>\d+)/\d+\] +eta: \S+[^\n]{0,200}? +"
        rb"loss: (?P<loss>%b) " % LOSS + rb"[^\n]{0,200}? time: (?P<seconds>%b) +data: " % NUMBER
    ),
    rate=Rate("images", Scope.RANK, Kind.INSTANT),
    settings=(
        count("batch_per_device", ARGUMENTS + rb"\bbatch_size=(?P<value>\d+)"),
        count("world_size", ARGUMENTS + rb"\bworld_size=(?P<value>\d+)"),
        fixed("world_size", rb"\bNot using distributed mode", 1),
        fixed("precision", ARGUMENTS + rb"\bamp=True", "amp"),
    ),
    start=re.compile(rb"^Start training$", re.MULTILINE),
    evaluation=re.compile(rb"Acc@1 (?P<top1>[\d.]+) Acc@5 (?P<top5>[\d.]+)"),
)
