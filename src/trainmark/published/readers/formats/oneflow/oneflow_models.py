"""Oneflow-Inc/models: `[rank:0] [train], epoch: 0/50, iter: 100/3336, loss: …, throughput: 161.66 | time`.

Older ones write `[0]` for the rank and no time. Every rank prints its own speed.
"""

import re

from trainmark.events import Scope
from trainmark.published.readers.format import Clock, Format, Kind, Rate, Setting

FORMAT = Format(
    name="oneflow-models",
    title="Oneflow-Inc/models",
    framework="oneflow",
    sign=re.compile(rb"\[(?:rank:)?\d+\] \[train\], epoch: \d+/\d+, iter: \d+/\d+, loss: "),
    step=re.compile(
        rb"\[(?:rank:)?(?P<rank>\d+)\] \[train\], epoch: (?P<epoch>\d+)/\d+, iter: (?P<step>\d+)/\d+"
        rb", loss: (?P<loss>[\d.]+|nan|inf)(?:, lr: (?P<lr>[\d.e-]+))?(?:, top1: (?P<top1>[\d.]+))?"
        rb"[^\n]{0,100}?, throughput: (?P<rate>[\d.]+)(?: \| (?P<wall>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+))?"
    ),
    rate=Rate("images", Scope.RANK, Kind.SINCE_LAST, every_rank=True),
    clock=Clock.ISO,
    settings=(
        Setting("nodes", re.compile(rb"\bnum_nodes \.+ (?P<value>\d+)"), convert=int),
        Setting("devices_per_node", re.compile(rb"\bnum_devices_per_node \.+ (?P<value>\d+)"), convert=int),
        Setting("batch_per_device", re.compile(rb"\btrain_batch_size \.+ (?P<value>\d+)"), convert=int),
        Setting("global_batch", re.compile(rb"\btrain_global_batch_size \.+ (?P<value>\d+)"), convert=int),
        Setting("precision", re.compile(rb"\buse_fp16 \.+ True"), means="amp"),
        Setting("precision", re.compile(rb"\buse_fp16 \.+ False"), means="fp32"),
    ),
    evaluation=re.compile(
        rb"\[(?:rank:)?0\] \[eval\], epoch: (?P<epoch>\d+)/\d+, iter: \d+/\d+, "
        rb"[^\n]{0,60}?top1: (?P<top1>[\d.]+)"
    ),
)
