"""NVIDIA's trainers of text: GNMT, Transformer and Transformer-XL.

GNMT: `0: TRAIN [0][10/1369]  Time 0.675 (0.496)  Data …  Tok/s 13009 (12196)  Loss/tok …  LR …`. The first
rate is that of one rank in this step, the one in brackets a mean over the epoch. The rank stands before;
whether each of them prints stands among the arguments.
Transformer: `Transformer | epoch 0 | step 10 |avg loss 16.0 |avg tokens … |tokens/s 167003.4 |…`. Tokens
count the whole batch of all devices, since the line before.
Transformer-XL: `| epoch   1 step    10 | batches … | lr … | ms/batch 400.0 | tok/s   1920 | loss …`.
NVIDIA's prints the tokens of all devices since the line before; the original has `ms/batch` alone.
"""

import re

from trainmark.events import Scope
from trainmark.logs.format import Format, Kind, Rate
from trainmark.logs.formats._common import LOSS, NUMBER, count, fixed

IN_BRACKETS = rb" \([^)\n]*\)\s+"

GNMT = Format(
    name="gnmt",
    title="NVIDIA's GNMT for PyTorch",
    framework="pytorch",
    sign=re.compile(rb"\d{1,6}: TRAIN \[\d+\]\[\d+/\d+\]\s+Time [^\n]{0,80}?Tok/s "),
    step=re.compile(
        rb"(?P<rank>\d{1,6}): TRAIN \[(?P<epoch>\d+)\]\[(?P<step>\d+)/\d+\]\s+Time (?P<seconds>[\d.]+)"
        + IN_BRACKETS
        + rb"Data \S+"
        + IN_BRACKETS
        + rb"Tok/s (?P<rate>%b)" % NUMBER
        + IN_BRACKETS
        + rb"Loss/tok (?P<loss>%b)" % LOSS
        + IN_BRACKETS
        + rb"LR (?P<lr>%b)" % NUMBER
    ),
    rate=Rate("tokens", Scope.RANK, Kind.INSTANT, every_rank=True),
    settings=(
        count("world_size", rb"\|\*\*GPUs\*\*\|[^\n]*\n[^\n]*\n\| *(?P<value>\d+) *\|", late=True),
        count("world_size", rb"\bworld_size=(?P<value>\d+)"),
        fixed("precision", rb"\bmath='fp32'", "fp32"),
        fixed("precision", rb"\bmath='(?:fp16|manual_fp16)'", "fp16"),
    ),
)


TRANSFORMER = Format(
    name="nvidia-transformer",
    title="NVIDIA's Transformer for PyTorch",
    framework="pytorch",
    sign=re.compile(rb"Transformer \| epoch \d+ \| step \d+ \|avg loss [^\n]{0,80}?\|tokens/s "),
    step=re.compile(
        rb"Transformer \| epoch (?P<epoch>\d+) \| step (?P<step>\d+) \|avg loss (?P<loss>%b) \|" % LOSS
        + rb"[^\n]{0,60}?\|tokens/s (?P<rate>%b) " % NUMBER
    ),
    rate=Rate("tokens", Scope.GLOBAL, Kind.SINCE_LAST),
    settings=(
        count("world_size", rb"\bWORLD_SIZE: (?P<value>\d+)"),
        count("world_size", rb"\bdistributed_world_size=(?P<value>\d+)"),
        fixed("precision", rb" --(?:fp16|amp)\b", "amp"),
    ),
)


TRANSFORMER_XL = Format(
    name="transformer-xl",
    title="Transformer-XL",
    framework="pytorch",
    sign=re.compile(rb"\| +epoch +\d+ +step +\d+ \| +(?:batches +)?\d+[^\n]{0,60}?\| +ms/batch +[\d.]+ \|"),
    step=re.compile(
        rb"\| +epoch +(?P<epoch>\d+) +step +(?P<step>\d+) \| [^\n]{0,60}?\| +lr +(?P<lr>%b) " % NUMBER
        + rb"\| +ms/batch +(?P<ms>%b) \|(?: +tok/s +(?P<rate>%b) \|)?" % (NUMBER, NUMBER)
        + rb" +loss +(?P<loss>%b) \|" % LOSS
    ),
    rate=Rate("tokens", Scope.GLOBAL, Kind.SINCE_LAST),
    summary=re.compile(rb"Training throughput: (?P<rate>[\d.]+) tok/s"),
)
