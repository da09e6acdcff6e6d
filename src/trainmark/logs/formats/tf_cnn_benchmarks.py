"""tf_cnn_benchmarks: `10<tab>images/sec: 872.2 +/- 2.2 (jitter = 8.9)<tab>7.954 [unix time]`.

The rate is a mean over all steps since warm-up. Lambda's fork adds the time, in whole seconds.
"""

import re

from trainmark.events import Scope
from trainmark.logs.format import Format, Kind, Rate, Setting, TimeFormat

FORMAT = Format(
    name="tf-cnn-benchmarks",
    title="TensorFlow tf_cnn_benchmarks",
    framework="tensorflow",
    sign=re.compile(rb"\b\d+\timages/sec: [\d.]+ \+/- [\d.]+ \(jitter = [\d.]+\)"),
    step=re.compile(
        rb"\b(?P<step>\d+)\timages/sec: (?P<rate>[\d.]+) \+/- [\d.]+ \(jitter = [\d.]+\)"
        rb"(?:\t(?P<loss>[\d.]+|nan|inf))?(?:\t(?P<top1>[\d.]+))?(?:\t(?P<top5>[\d.]+))?"
        rb"(?: (?P<wall>\d{10}(?:\.\d+)?))?"
    ),
    rate=Rate("images", Scope.GLOBAL, Kind.CUMULATIVE),
    clock=TimeFormat.UNIX,
    settings=(
        Setting("global_batch", re.compile(rb"Batch size: +(?P<value>\d+) global"), convert=int),
        Setting("batch_per_device", re.compile(rb"\b(?P<value>\d+) per device"), convert=int),
        Setting(
            "world_size",
            re.compile(rb"Devices: +\[(?P<value>'[^\]\n]{1,8000}')\]"),
            convert=lambda devices: devices.count("'") // 2,
        ),
        Setting("framework_version", re.compile(rb"TensorFlow: +(?P<value>[\d.]+)")),
        Setting("precision", re.compile(rb"--use_fp16(?:=[Tt]rue)?\b(?!=)"), means="amp"),
        Setting("layout", re.compile(rb"Data format: +(?P<value>NCHW|NHWC)")),
        Setting("device", re.compile(rb"name: (?P<value>[^\n]{1,60}?) (?:major|computeCapability): ")),
    ),
    start=re.compile(rb"TensorFlow: +[\d.]+\s+Model: "),
    summary=re.compile(rb"total images/sec: (?P<rate>[\d.]+)"),
)
