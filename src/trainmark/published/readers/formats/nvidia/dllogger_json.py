"""DLLogger's JSON: `DLLL {"timestamp": "1570716921.84", …, "step": [0, 5], "data": {"train.loss": 8.57, …}}`.

The names are those that NVIDIA's examples log; whatever they are called, the rates count all devices.
"""

import re
from collections.abc import Callable
from typing import Any

from trainmark.events import Scope
from trainmark.published.readers.format import Clock, Format, Kind, Rate, Setting
from trainmark.published.readers.formats.nvidia.dllogger import loss_scale

STAMP = rb'\{"timestamp": "(?P<wall>[\d.]+)", [^\n{]*?"type": "LOG", "step": '
LOSS = rb'"(?:train\.loss|total_loss|average_loss|loss)": '
RATE = rb'"(?:train\.total_ips|total_ips|train\.ips|imgs_per_sec|throughput_train|train_throughput)": '
PARAMETERS = rb'"step": "PARAMETER", "data": \{'


def parameter(name: str, key: bytes, value: bytes, convert: Callable[[str], Any] = str) -> Setting:
    return Setting(
        name, re.compile(PARAMETERS + rb'[^\n{]*?"%b": "?(?P<value>%b)' % (key, value)), None, convert
    )


def flag(name: str, means: str, key: bytes, value: bytes) -> Setting:
    return Setting(name, re.compile(PARAMETERS + rb'[^\n{]*?"%b": %b\b' % (key, value)), means)


FORMAT = Format(
    name="dllogger-json",
    title="DLLogger JSON lines",
    framework=None,
    sign=re.compile(STAMP),
    # A step is logged again at a higher verbosity, with neither its loss nor its rate.
    step=re.compile(
        STAMP + rb'\[(?P<epoch>\d+), (?P<step>\d+)\], "data": \{(?=[^\n{]*?(?:' + LOSS + rb"|" + RATE + rb"))"
        rb"(?:(?=[^\n{]*?" + LOSS + rb"(?P<loss>[^,}\n]+)[,}]))?"
        rb"(?:(?=[^\n{]*?" + RATE + rb"(?P<rate>[^,}\n]+)[,}]))?"
        rb'(?:(?=[^\n{]*?"(?:lr|learning_rate|train\.lr)": (?P<lr>[^,}\n]+)[,}]))?'
        rb"[^\n{]*\}"
    ),
    rate=Rate("images", Scope.GLOBAL, Kind.SINCE_LAST),
    clock=Clock.UNIX,
    settings=(
        parameter("batch_per_device", rb"batch_size", rb"\d+", int),
        parameter("batch_per_device", rb"batch_size_per_gpu", rb"\d+", int),
        parameter("world_size", rb"world_size", rb"\d+", int),
        parameter("learning_rate", rb"(?:lr|lr_init|learning_rate)", rb"[-+.\deE]+", float),
        parameter("momentum", rb"(?:momentum|mom)", rb"[-+.\deE]+", float),
        parameter("layout", rb"(?:memory_format|data_format)", rb"\w+"),
        flag("precision", "amp", rb"(?:use_tf_)?amp", rb"true"),
        flag("precision", "fp16", rb"fp16", rb"true"),
        flag("precision", "fp32", rb"amp", rb"false"),
        flag("loss_scale", "dynamic", rb"dynamic_loss_scale", rb"true"),
        Setting(
            "loss_scale",
            re.compile(
                PARAMETERS
                + rb'(?=[^\n{]*?"(?:amp|fp16)": true)[^\n{]*?"static_loss_scale": (?P<value>[\d.]+)'
            ),
            convert=loss_scale,
        ),
    ),
    start=re.compile(STAMP + rb'"PARAMETER", "data": \{[^\n{]*?"batch_size": '),
    evaluation=re.compile(
        rb'"step": \[(?P<epoch>\d+)\], "data": \{[^\n{]*?"val\.top1": (?P<top1>[\d.]+)'
        rb'(?:, "val\.top5": (?P<top5>[\d.]+))?(?:, "val\.loss": (?P<loss>[^,}\n]+))?'
    ),
    summary=re.compile(
        rb'"step": \[\], "data": \{[^\n{]*?'
        + RATE
        + rb'(?P<rate>[\d.]+)(?:[^\n{]*?"val\.top1": (?P<top1>[\d.]+))?'
    ),
)
