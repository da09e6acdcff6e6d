"""PyTorch's examples/imagenet: `Epoch: [0][ 5/53]  Time  0.360 ( 2.410)  Data …  Loss …  Acc@1 …`.

Time is of this step on this rank, its mean over the epoch in brackets. Every rank of a node prints. A log
names neither the batch nor the world size.
"""

import re

from trainmark.events import Scope
from trainmark.published.readers.format import Format, Kind, Rate

AVERAGE = rb" \( *[\d.e+-]+\)"

FORMAT = Format(
    name="torch-examples",
    title="PyTorch examples/imagenet",
    framework="pytorch",
    sign=re.compile(rb"Epoch: \[\d+\]\[ *\d+/\d+\]\s+Time +[\d.]+ \( *[\d.]+\)\s+Data "),
    step=re.compile(
        rb"Epoch: \[(?P<epoch>\d+)\]\[ *(?P<step>\d+)/\d+\]\s+Time +(?P<seconds>[\d.]+)" + AVERAGE + rb"\s+"
        rb"Data +[\d.]+" + AVERAGE + rb"\s+Loss +(?P<loss>[\d.e+-]+|nan|inf) \([^)\n]*\)"
        rb"(?:\s+(?:Acc|Prec)@1 +(?P<top1>[\d.]+)" + AVERAGE + rb")?"
        rb"(?:\s+(?:Acc|Prec)@5 +(?P<top5>[\d.]+)" + AVERAGE + rb")?"
    ),
    rate=Rate("images", Scope.RANK, Kind.INSTANT, every_rank=True),
    start=re.compile(rb"=> (?:creating|using pre-trained) model"),
    evaluation=re.compile(rb" \* +(?:Acc|Prec)@1 (?P<top1>[\d.]+) +(?:Acc|Prec)@5 (?P<top5>[\d.]+)"),
)
