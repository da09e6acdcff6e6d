"""DLLogger's text and JSON, as NVIDIA's examples write them.

`DLL 2020-12-16 11:32:20.234886 - Epoch: 0 Iteration: 2  train.loss : …`: image classification for PyTorch
prints rank 0's rate times the world size, data time included (`train.total_ips`); `train.compute_ips`,
logged for the same step at a higher verbosity, leaves it out. MXNet's `train.ips` is the rate of all ranks
since the line before, and its `batch_size` the whole job's.
TensorFlow writes steps as tuples: `(0, 200) total_ips : 3092.85` in its benchmark mode, `(3, 16294)
imgs_per_sec : 1169.26  cross_entropy : …` in training: the rate of that one step over all devices.
`train_throughput` at the end is their arithmetic mean, which lies above samples over time.
JSON is `DLLL {"timestamp": "1570716921.84", …, "step": [0, 5], "data": {"train.loss": 8.57, …}}`; whatever
the rates are called, they count all devices.
"""

import re
from collections.abc import Callable
from typing import Any

from trainmark.events import Scope
from trainmark.logs.format import Format, Kind, Rate, Setting, TimeFormat

# `str(datetime.now())` leaves the fraction out where it is zero. A bounded `.` is far cheaper to match
# than digits one by one, and the words around it leave no doubt.
STAMP = rb"DLLL? (?P<wall>.{19,26}) - "
STEP = STAMP + rb"Epoch: (?P<epoch>\d+) Iteration: (?P<step>\d+)  "

# Up to the next of its kind, so that a line of many takes no longer than its length; for the same reason
# what may stand between the metrics of a line is bounded wherever it is skipped.
WITHIN = rb"PARAMETER (?:(?!PARAMETER )[^\n])*?"
# A run tells its parameters before its first step. Literal from its first byte, so that it costs little.
START = re.compile(rb" - " + WITHIN + rb" batch_size : ")


# Later versions print the unit of the loss, which is none, and both rates on one line.
BEFORE_RATE = rb"(?:None)? ?(?:train\.compute_ips : \S+ images/s )?train\.total_ips : "


def loss_scale(text: str) -> str | float:
    return text if text == "dynamic" else float(text)


def parameter(name: str, key: bytes, value: bytes, convert: Callable[[str], Any] = str) -> Setting:
    """A setting from a line such as `PARAMETER arch : resnet50  batch_size : 128  lr : 0.1`."""
    return Setting(name, re.compile(WITHIN + rb"\b%b : (?P<value>%b)" % (key, value)), None, convert)


def flag(name: str, means: str, key: bytes, value: bytes = b"True") -> Setting:
    """A setting that a parameter of this value means."""
    return Setting(name, re.compile(WITHIN + rb" %b : %b\b" % (key, value)), means)


NUMBER = rb"[-+.\deE]+"

# Apex prints its defaults first, and what holds after the user's overrides.
APEX_LOSS_SCALE = Setting(
    "loss_scale",
    re.compile(
        rb"After processing overrides[^\n]{0,99}\n(?:[^\n]{0,99}\n){0,8}?"
        rb"[^\n]{0,99}?\bloss_scale +: (?P<value>dynamic|[\d.]+)"
    ),
    convert=loss_scale,
)

PYTORCH = Format(
    name="dllogger-pytorch",
    title="DLLogger text of NVIDIA's PyTorch image classification",
    framework="pytorch",
    sign=re.compile(STEP + rb"train\.loss : \S+ " + BEFORE_RATE),
    step=re.compile(STEP + rb"train\.loss : (?P<loss>\S+) " + BEFORE_RATE + rb"(?P<rate>\S+) "),
    rate=Rate("images", Scope.GLOBAL, Kind.SINCE_LAST),
    settings=(
        parameter("batch_per_device", rb"(?<!optimizer_)batch_size", rb"\d+", int),
        parameter("world_size", rb"world_size", rb"\d+", int),
        parameter("learning_rate", rb"lr", NUMBER, float),
        parameter("momentum", rb"momentum", NUMBER, float),
        parameter("layout", rb"memory_format", rb"\w+"),
        flag("precision", "amp", rb"amp"),
        flag("precision", "fp16", rb"fp16"),
        flag("precision", "fp32", rb"amp", rb"False"),
        APEX_LOSS_SCALE,
        flag("loss_scale", "dynamic", rb"dynamic_loss_scale"),
        Setting(
            "loss_scale",
            re.compile(
                rb"(?=%b (?:amp|fp16) : True\b)%b static_loss_scale : (?P<value>[\d.]+)" % (WITHIN, WITHIN)
            ),
            convert=loss_scale,
        ),
    ),
    start=START,
    evaluation=re.compile(
        rb"- Epoch: (?P<epoch>\d+)  [^\n]{0,400}?val\.top1 : (?P<top1>\S+) %(?: val\.top5 : (?P<top5>\S+) %)?"
        rb"(?: val\.loss : (?P<loss>\S+))?"
    ),
    summary=re.compile(
        rb"- Summary: [^\n]{0,400}?train\.total_ips : (?P<rate>\S+) "
        rb"(?:[^\n]{0,400}?val\.top1 : (?P<top1>\S+) %)?"
    ),
)

# What any other program logs in these words: its loss, and no rate that would have one meaning.
PLAIN = Format(
    name="dllogger",
    title="DLLogger text without a rate",
    framework=None,
    sign=re.compile(STEP + rb"loss : "),
    step=re.compile(STEP + rb"loss : (?P<loss>\S+) "),
    settings=(
        parameter("batch_per_device", rb"batch_size_per_gpu", rb"\d+", int),
        parameter("world_size", rb"world_size", rb"\d+", int),
    ),
)


TENSORFLOW_STEP = STAMP + rb"\((?P<epoch>\d+), (?P<step>\d+)\) (?:total_ips|imgs_per_sec) : "

TENSORFLOW = Format(
    name="dllogger-tensorflow",
    title="DLLogger text of NVIDIA's TensorFlow image classification",
    framework="tensorflow",
    sign=re.compile(TENSORFLOW_STEP),
    step=re.compile(
        TENSORFLOW_STEP
        + rb"(?P<rate>\S+) (?:[^\n]{0,400}? total_loss : (?P<loss>\S+)  learning_rate : (?P<lr>\S+))?"
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


MXNET = Format(
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


JSON_STAMP = rb'\{"timestamp": "(?P<wall>[\d.]+)", [^\n{]*?"type": "LOG", "step": '
JSON_LOSS = rb'"(?:train\.loss|total_loss|average_loss|loss)": '
JSON_RATE = rb'"(?:train\.total_ips|total_ips|train\.ips|imgs_per_sec|throughput_train|train_throughput)": '
JSON_PARAMETERS = rb'"step": "PARAMETER", "data": \{'


def json_parameter(name: str, key: bytes, value: bytes, convert: Callable[[str], Any] = str) -> Setting:
    return Setting(
        name, re.compile(JSON_PARAMETERS + rb'[^\n{]*?"%b": "?(?P<value>%b)' % (key, value)), None, convert
    )


def json_flag(name: str, means: str, key: bytes, value: bytes) -> Setting:
    return Setting(name, re.compile(JSON_PARAMETERS + rb'[^\n{]*?"%b": %b\b' % (key, value)), means)


JSON = Format(
    name="dllogger-json",
    title="DLLogger JSON lines",
    framework=None,
    sign=re.compile(JSON_STAMP),
    # A step is logged again at a higher verbosity, with neither its loss nor its rate.
    step=re.compile(
        JSON_STAMP
        + rb'\[(?P<epoch>\d+), (?P<step>\d+)\], "data": \{(?=[^\n{]*?(?:'
        + JSON_LOSS
        + rb"|"
        + JSON_RATE
        + rb"))"
        rb"(?:(?=[^\n{]*?" + JSON_LOSS + rb"(?P<loss>[^,}\n]+)[,}]))?"
        rb"(?:(?=[^\n{]*?" + JSON_RATE + rb"(?P<rate>[^,}\n]+)[,}]))?"
        rb'(?:(?=[^\n{]*?"(?:lr|learning_rate|train\.lr)": (?P<lr>[^,}\n]+)[,}]))?'
        rb"[^\n{]*\}"
    ),
    rate=Rate("images", Scope.GLOBAL, Kind.SINCE_LAST),
    clock=TimeFormat.UNIX,
    settings=(
        json_parameter("batch_per_device", rb"batch_size", rb"\d+", int),
        json_parameter("batch_per_device", rb"batch_size_per_gpu", rb"\d+", int),
        json_parameter("world_size", rb"world_size", rb"\d+", int),
        json_parameter("learning_rate", rb"(?:lr|lr_init|learning_rate)", rb"[-+.\deE]+", float),
        json_parameter("momentum", rb"(?:momentum|mom)", rb"[-+.\deE]+", float),
        json_parameter("layout", rb"(?:memory_format|data_format)", rb"\w+"),
        json_flag("precision", "amp", rb"(?:use_tf_)?amp", rb"true"),
        json_flag("precision", "fp16", rb"fp16", rb"true"),
        json_flag("precision", "fp32", rb"amp", rb"false"),
        json_flag("loss_scale", "dynamic", rb"dynamic_loss_scale", rb"true"),
        Setting(
            "loss_scale",
            re.compile(
                JSON_PARAMETERS
                + rb'(?=[^\n{]*?"(?:amp|fp16)": true)[^\n{]*?"static_loss_scale": (?P<value>[\d.]+)'
            ),
            convert=loss_scale,
        ),
    ),
    start=re.compile(JSON_STAMP + rb'"PARAMETER", "data": \{[^\n{]*?"batch_size": '),
    evaluation=re.compile(
        rb'"step": \[(?P<epoch>\d+)\], "data": \{[^\n{]*?"val\.top1": (?P<top1>[\d.]+)'
        rb'(?:, "val\.top5": (?P<top5>[\d.]+))?(?:, "val\.loss": (?P<loss>[^,}\n]+))?'
    ),
    summary=re.compile(
        rb'"step": \[\], "data": \{[^\n{]*?'
        + JSON_RATE
        + rb'(?P<rate>[\d.]+)(?:[^\n{]*?"val\.top1": (?P<top1>[\d.]+))?'
    ),
)
