"""DLLogger's text by NVIDIA's later MXNet ResNet-50: `… train.loss : 6.9  train.ips : 1384.8 images/s …`.

Rank 0 alone logs, the rate is that of all ranks since its line before. `batch_size` is the whole job's.
"""

import re

from trainmark.events import Scope
from trainmark.published.readers.format import Format, Kind, Rate
from trainmark.published.readers.formats.nvidia.dllogger import NUMBER, START, STEP, WITHIN, flag, parameter

FORMAT = Format(
    name="dllogger-mxnet",
    title="DLLogger text of NVIDIA's MXNet ResNet-50",
    framework="mxnet",
    sign=re.compile(STEP + rb"(?:train\.loss : \S+  )?train\.ips : |- " + WITHIN + rb" kv_store : "),
    step=re.compile(
        STEP + rb"(?:train\.loss : (?P<loss>\S+)  )?train\.ips : (?P<rate>\S+) "
        rb"(?:[^\n]{0,400}?train\.lr : (?P<lr>\S+))?"
    ),
    rate=Rate("images", Scope.GLOBAL, Kind.SINCE_LAST),
    settings=(
        parameter("global_batch", rb"batch_size", rb"\d+", int),
        parameter("learning_rate", rb"lr", NUMBER, float),
        parameter("momentum", rb"mom", NUMBER, float),
        parameter("layout", rb"conv_layout", rb"\w+"),
        flag("precision", "amp", rb"amp"),
        flag("precision", "fp16", rb"dtype", rb"float16"),
        flag("precision", "fp32", rb"dtype", rb"float32"),
    ),
    start=START,
    evaluation=re.compile(
        rb"- Epoch: (?P<epoch>\d+)  [^\n]{0,400}?val\.accuracy : (?P<top1>\S+) "
        rb"(?:[^\n]{0,400}?val\.top_k_accuracy_5 : (?P<top5>\S+) )?"
    ),
    summary=re.compile(
        rb"- Summary: [^\n]{0,400}?train\.ips : (?P<rate>\S+) "
        rb"(?:[^\n]{0,400}?val\.accuracy : (?P<top1>\S+) )?"
    ),
)
