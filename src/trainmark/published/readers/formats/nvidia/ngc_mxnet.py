"""NVIDIA's MXNet ResNet-50: `[1,7]<stderr>:2020-12-16 08:09:30,473:INFO: Epoch[0] Batch [20-39] Speed: …`.

Every rank prints, and each prints the rate of all ranks over the batches named. `batch_size` is the whole
job's. Its benchmark script runs one device count after the other into the same file.
"""

import re

from trainmark.events import Scope
from trainmark.published.readers.format import Format, Kind, Rate, Setting

STEP = rb"INFO: Epoch\[(?P<epoch>\d+)\] Batch \[(?P<step>\d+)-(?P<last_step>\d+)\]\s+Speed: "
NUMBER = rb"(?P<value>[-+.\deE]+)"


def argument(key: bytes, value: bytes) -> re.Pattern[bytes]:
    return re.compile(rb"Start with arguments Namespace\((?:(?!Namespace\()[^\n])*?\b%b=%b" % (key, value))


FORMAT = Format(
    name="ngc-mxnet",
    title="NVIDIA's MXNet ResNet-50",
    framework="mxnet",
    sign=re.compile(STEP),
    step=re.compile(
        rb"(?P<wall>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+):"
        + STEP
        + rb"(?P<rate>\S+) samples/sec(?:\s+LR: (?P<lr>\S+))?"
    ),
    rate=Rate("images", Scope.GLOBAL, Kind.SINCE_LAST, every_rank=True),
    settings=(
        Setting("global_batch", argument(rb"batch_size", rb"(?P<value>\d+)"), convert=int),
        Setting("world_size", re.compile(rb"NCCL INFO comm \w+ rank \d+ nranks (?P<value>\d+)"), convert=int),
        Setting("precision", argument(rb"amp", rb"True"), "amp"),
        Setting("precision", argument(rb"dtype", rb"'float16'"), "fp16"),
        Setting("precision", argument(rb"dtype", rb"'float32'"), "fp32"),
        Setting("layout", argument(rb"conv_layout", rb"'(?P<value>\w+)'")),
        Setting("learning_rate", argument(rb"lr", NUMBER), convert=float),
        Setting("momentum", argument(rb"mom", NUMBER), convert=float),
    ),
    start=re.compile(rb"INFO: Start with arguments Namespace\("),
    evaluation=re.compile(rb"INFO: Epoch\[(?P<epoch>\d+)\] Validation-accuracy=(?P<top1>[\d.]+)"),
    summary=re.compile(rb"INFO: Experiment took: (?P<seconds>[\d.]+) sec"),
)
