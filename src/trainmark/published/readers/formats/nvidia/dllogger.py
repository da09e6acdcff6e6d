"""DLLogger's text with named steps: `DLL 2020-12-16 11:32:20.234886 - Epoch: 0 Iteration: 2  train.loss : …`.

NVIDIA's image classification for PyTorch prints rank 0's rate times the world size, data time included
(`train.total_ips`); `train.compute_ips`, logged for the same step at a higher verbosity, leaves it out.
"""

import re
from collections.abc import Callable
from typing import Any

from trainmark.events import Scope
from trainmark.published.readers.format import Format, Kind, Rate, Setting

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

FORMATS = (PYTORCH, PLAIN)
