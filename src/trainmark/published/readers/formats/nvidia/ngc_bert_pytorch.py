"""NVIDIA's BERT pre-training for PyTorch: `… Training Epoch: 0 Training Iteration: 1  average_loss : 11.2 …`.

It prints no rate: an iteration is batch × accumulation × ranks sequences, and the time stamps tell the rest.
While the loss scale is still too high a skipped iteration is done again under the same number.
"""

import math
import re

from trainmark.events import Scope
from trainmark.published.readers.format import Format, Kind, Rate, Setting
from trainmark.published.readers.formats.nvidia.dllogger import (
    APEX_LOSS_SCALE,
    NUMBER,
    STAMP,
    WITHIN,
    parameter,
)

STEP = STAMP + rb"Training Epoch: (?P<epoch>\d+) Training Iteration: (?P<step>\d+)  "


def launched(options: str) -> int:
    """Processes that torch.distributed.launch starts: those of a node times the nodes, one if not said."""
    return math.prod(int(number) for number in re.findall(r"--(?:nproc_per_node|nnodes)[= ](\d+)", options))


def argument(key: bytes, value: bytes) -> re.Pattern[bytes]:
    return re.compile(WITHIN + rb"[ (]%b=%b" % (key, value))


FORMAT = Format(
    name="ngc-bert-pytorch",
    title="NVIDIA's BERT pre-training for PyTorch",
    framework="pytorch",
    sign=re.compile(STEP + rb"(?:average|final)_loss : "),
    step=re.compile(
        STEP
        + rb"(?:average|final)_loss : (?P<loss>[^\s]+)(?:  step_loss : \S+  learning_rate : (?P<lr>\S+))?\s"
    ),
    rate=Rate("sequences", Scope.GLOBAL, Kind.SINCE_LAST),
    settings=(
        parameter("batch_per_device", rb"batch_size_per_gpu", rb"\d+", int),
        Setting("accumulation", argument(rb"gradient_accumulation_steps", rb"(?P<value>\d+)"), convert=int),
        Setting(
            "world_size",
            re.compile(
                rb"torch\.distributed\.launch (?P<value>[^\n]{0,100}?--nproc_per_node[^\n]{0,200}?) \S+\.py"
            ),
            convert=launched,
        ),
        Setting("precision", argument(rb"amp", rb"True"), "amp"),
        Setting("precision", argument(rb"fp16", rb"True"), "fp16"),
        Setting("precision", argument(rb"fp16", rb"False"), "fp32"),
        APEX_LOSS_SCALE,
        parameter("learning_rate", rb"learning_rate", NUMBER, float),
    ),
    start=re.compile(rb"torch\.distributed\.launch | - PARAMETER Config : "),
    summary=re.compile(
        rb" -  e2e_train_time : (?P<seconds>\S+)  training_sequences_per_second : (?P<rate>\S+)"
        rb"(?:  final_loss : (?P<loss>\S+))?"
    ),
)
