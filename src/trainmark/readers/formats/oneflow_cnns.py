"""OneFlow's cnns trainer: `train: epoch 0, iter 20, loss: 6.5, …, samples/s: 288.088 [unix time]`."""

import re

from trainmark.events import Scope
from trainmark.readers.format import Clock, Format, Kind, Rate, Setting

FORMAT = Format(
    name="oneflow-cnns",
    title="OneFlow-Benchmark Classification/cnns",
    framework="oneflow",
    sign=re.compile(rb"train: epoch \d+, iter \d+, loss: [\d.]+.*samples/s: [\d.]+"),
    step=re.compile(
        rb"train: epoch (?P<epoch>\d+), iter (?P<step>\d+), loss: (?P<loss>[\d.]+|nan)"
        rb"(?:, top_1: (?P<top1>[\d.]+))?[^\n]*?samples/s: (?P<rate>[\d.]+)(?: (?P<wall>\d{10}\.\d+))?"
    ),
    rate=Rate("images", Scope.GLOBAL, Kind.SINCE_LAST),
    clock=Clock.UNIX,
    settings=(
        Setting("nodes", re.compile(rb"num_nodes = (?P<value>\d+)"), convert=int),
        Setting("devices_per_node", re.compile(rb"gpu_num_per_node = (?P<value>\d+)"), convert=int),
        Setting("batch_per_device", re.compile(rb"[^_]batch_size_per_device = (?P<value>\d+)"), convert=int),
    ),
    evaluation=re.compile(rb"validation: epoch (?P<epoch>\d+),[^\n]*?top_1: (?P<top1>[\d.]+)"),
)
