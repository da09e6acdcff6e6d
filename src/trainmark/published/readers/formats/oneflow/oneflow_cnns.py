"""OneFlow's cnns trainer: `train: epoch 0, iter 20, loss: 6.5, …, samples/s: 288.088 [unix time]`.

The first interval of an epoch also holds the checkpoint and the validation before it.
"""

import re

from trainmark.events import Scope
from trainmark.published.readers.format import Clock, Format, Kind, Rate, Setting

# The header of both of OneFlow-Benchmark's trainers, cnns and BERT: `num_nodes = 1`, a line an argument.
HEADER = (
    Setting("nodes", re.compile(rb"\bnum_nodes = (?P<value>\d+)"), convert=int),
    Setting("devices_per_node", re.compile(rb"\bgpu_num_per_node = (?P<value>\d+)"), convert=int),
    Setting("batch_per_device", re.compile(rb"\bbatch_size_per_device = (?P<value>\d+)"), convert=int),
    Setting("precision", re.compile(rb"\buse_fp16 = True"), means="amp"),
    Setting("precision", re.compile(rb"\buse_fp16 = False"), means="fp32"),
    Setting("learning_rate", re.compile(rb"\blearning_rate = (?P<value>[\d.e-]+)"), convert=float),
)

FORMAT = Format(
    name="oneflow-cnns",
    title="OneFlow-Benchmark Classification/cnns",
    framework="oneflow",
    sign=re.compile(rb"train: epoch \d+, iter \d+, loss: [^\n]{0,100}samples/s: [\d.]+"),
    step=re.compile(
        rb"train: epoch (?P<epoch>\d+), iter (?P<step>\d+), loss: (?P<loss>[\d.]+|nan|inf)"
        rb"(?:, top_1: (?P<top1>[\d.]+))?(?:, top_k: (?P<top5>[\d.]+))?"
        rb"[^\n]{0,100}?samples/s: (?P<rate>[\d.]+)(?: (?P<wall>\d{10}\.\d+))?"
    ),
    rate=Rate("images", Scope.GLOBAL, Kind.SINCE_LAST),
    clock=Clock.UNIX,
    settings=(
        *HEADER,
        Setting("momentum", re.compile(rb"\bmomentum = (?P<value>[\d.]+)"), convert=float),
    ),
    start=re.compile(rb"Running \w+: num_gpu_per_node = \d+"),
    evaluation=re.compile(
        rb"validation: epoch (?P<epoch>\d+), iter \d+, top_1: (?P<top1>[\d.]+)(?:, top_k: (?P<top5>[\d.]+))?"
    ),
)
