"""PyTorch's own scripts: examples/imagenet, and torchvision's references.

examples/imagenet: `Epoch: [0][ 5/53]  Time  0.360 ( 2.410)  Data …  Loss …  Acc@1 …`. Time is of this step
on this rank, its mean over the epoch in brackets. Every rank of a node prints. A log names neither the
batch nor the world size.
torchvision: `Epoch: [0]  [ 10/1252]  eta: 0:12:34  lr: 0.1  img/s: 512.3  loss: … time: …`. DeiT, MAE and
others print the same without `img/s`. Time and rate are means over some twenty steps of rank 0, which alone
prints; the batch and the ranks stand among the arguments, on one line or one a line.
"""

import re

from trainmark.events import Scope
from trainmark.logs.format import Format, Kind, Rate
from trainmark.logs.formats._common import LOSS, NUMBER, count, fixed

IN_BRACKETS = rb" \( *[\d.e+-]+\)"

IMAGENET_EXAMPLE = Format(
    name="torch-examples",
    title="PyTorch examples/imagenet",
    framework="pytorch",
    sign=re.compile(rb"Epoch: \[\d+\]\[ *\d+/\d+\]\s+Time +[\d.]+ \( *[\d.]+\)\s+Data "),
    step=re.compile(
        rb"Epoch: \[(?P<epoch>\d+)\]\[ *(?P<step>\d+)/\d+\]\s+Time +(?P<seconds>[\d.]+)"
        + IN_BRACKETS
        + rb"\s+"
        rb"Data +[\d.]+" + IN_BRACKETS + rb"\s+Loss +(?P<loss>[\d.e+-]+|nan|inf) \([^)\n]*\)"
        rb"(?:\s+(?:Acc|Prec)@1 +(?P<top1>[\d.]+)" + IN_BRACKETS + rb")?"
        rb"(?:\s+(?:Acc|Prec)@5 +(?P<top5>[\d.]+)" + IN_BRACKETS + rb")?"
    ),
    rate=Rate("images", Scope.RANK, Kind.INSTANT, every_rank=True),
    start=re.compile(rb"=> (?:creating|using pre-trained) model"),
    evaluation=re.compile(rb" \* +(?:Acc|Prec)@1 (?P<top1>[\d.]+) +(?:Acc|Prec)@5 (?P<top5>[\d.]+)"),
)


ARGUMENTS = rb"\bNamespace\((?:(?!Namespace\()[^)]){0,6000}?"

TORCHVISION = Format(
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
