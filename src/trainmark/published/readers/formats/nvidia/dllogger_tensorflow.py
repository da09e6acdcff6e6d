"""DLLogger's text with steps as tuples, by NVIDIA's TensorFlow image classification.

`(0, 200) total_ips : 3092.85` in its benchmark mode, `(3, 16294) imgs_per_sec : 1169.26  cross_entropy : …`
in training: the rate of that one step over all devices. `train_throughput` at the end is their arithmetic
mean, which lies above samples over time.
"""

import re

from trainmark.events import Scope
from trainmark.published.readers.format import Format, Kind, Rate, Setting
from trainmark.published.readers.formats.nvidia.dllogger import (
    NUMBER,
    STAMP,
    START,
    WITHIN,
    flag,
    loss_scale,
    parameter,
)

STEP = STAMP + rb"\((?P<epoch>\d+), (?P<step>\d+)\) (?:total_ips|imgs_per_sec) : "

FORMAT = Format(
    name="dllogger-tensorflow",
    title="DLLogger text of NVIDIA's TensorFlow image classification",
    framework="tensorflow",
    sign=re.compile(STEP),
    step=re.compile(
        STEP + rb"(?P<rate>\S+) (?:[^\n]{0,400}? total_loss : (?P<loss>\S+)  learning_rate : (?P<lr>\S+))?"
    ),
    rate=Rate("images", Scope.GLOBAL, Kind.INSTANT),
    settings=(
        parameter("batch_per_device", rb"batch_size", rb"\d+", int),
        Setting("world_size", re.compile(rb"\bNum GPUs (?P<value>\d+)"), convert=int),
        parameter("learning_rate", rb"lr_init", NUMBER, float),
        parameter("momentum", rb"momentum", NUMBER, float),
        parameter("layout", rb"data_format", rb"\w+"),
        # `precision : fp32` stays there when automatic mixed precision is on.
        flag("precision", "amp", rb"(?:use_tf_)?amp"),
        parameter("precision", rb"precision", rb"fp16|fp32"),
        flag("precision", "fp32", rb"amp", rb"False"),
        Setting(
            "loss_scale",
            re.compile(
                rb"(?=%b use_static_loss_scaling : True\b)%b loss_scale : (?P<value>[\d.]+)"
                % (WITHIN, WITHIN)
            ),
            convert=loss_scale,
        ),
        Setting(
            "loss_scale",
            re.compile(
                rb"(?=%b amp : True\b)%b static_loss_scale : (?P<value>[1-9][\d.]*)" % (WITHIN, WITHIN)
            ),
            convert=loss_scale,
        ),
    ),
    start=START,
    evaluation=re.compile(
        rb" - \((?P<epoch>\d*)[\d, ]*\) [^\n]{0,400}?top1_accuracy : (?P<top1>\S+) "
        rb"(?:[^\n]{0,400}?top5_accuracy : (?P<top5>\S+) )?"
    ),
    summary=re.compile(rb" - \(\) train_throughput : (?P<rate>\S+) "),
)
