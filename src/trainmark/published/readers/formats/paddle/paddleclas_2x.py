"""PaddleClas 2.x: `… batch_cost: 0.59293 s, reader_cost: 0.00416 s, ips: 107.93876 images/sec`.

Times and rates are of one device, means over the steps of the epoch so far.
"""

import re

from trainmark.events import Scope
from trainmark.published.readers.format import Clock, Format, Kind, Rate, Setting
from trainmark.published.readers.formats._printed_batch import from_time_and_rate
from trainmark.published.readers.formats.paddle.paddleclas_2020 import LAUNCHER

RATE = Rate("images", Scope.RANK, Kind.CUMULATIVE)

# As in 2020, the means begin anew at step 5; those of the steps before are left out.
LATER_COST = (
    rb"(?:(?!%b[0-4][ /])(?=[^\n]{0,300} batch_cost: (?P<seconds>[\d.]+) ?s, reader_cost: [\d.]+(?: s)?, "
    rb"ips: (?P<rate>[\d.]+) (?:images|samples)/s))?"
)
BATCH = Setting(
    "batch_per_device",
    re.compile(
        rb"(?:train step:|\[Train\])[^\n]{0,300}"
        rb"batch_cost: (?P<value>[\d.]+ ?s, reader_cost: [\d.]+[ s]*, ips: [\d.]+)"
    ),
    convert=from_time_and_rate,
)

DYGRAPH = Format(
    name="paddleclas-2.0",
    title="PaddleClas 2.0, dynamic graph",
    framework="paddle",
    sign=re.compile(rb"INFO: epoch:\d+\s*, train step:\d+\s*, [^\n]{0,300}batch_cost: "),
    step=re.compile(
        rb"(?P<wall>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) INFO: "
        + LATER_COST % rb"epoch:\d+\s*, train step:"
        + rb"epoch:(?P<epoch>\d+)\s*, train step:(?P<step>\d+)\s*"
        rb"(?:, top1: (?P<top1>[\d.]+))?(?:, top5: (?P<top5>[\d.]+))?"
        rb"[^\n]{0,60}?, loss: (?P<loss>[\d.]+|nan|inf)(?:, lr: (?P<lr>[\d.]+))?"
    ),
    rate=RATE,
    clock=Clock.ISO,
    settings=(*LAUNCHER, BATCH),
    evaluation=re.compile(rb"END epoch:(?P<epoch>\d+)\s*,? valid [^\n]{0,60}?top1: (?P<top1>[\d.]+)"),
)

PPCLS = Format(
    name="paddleclas-2.x",
    title="PaddleClas 2.1 and later (ppcls)",
    framework="paddle",
    sign=re.compile(rb"ppcls INFO: \[(?:Train|Eval)\]\[Epoch \d+"),
    step=re.compile(
        rb"(?P<wall>\d{4}/\d\d/\d\d \d\d:\d\d:\d\d)\] ppcls INFO: \[Train\]"
        + LATER_COST % rb"\[Epoch \d+/\d+\]\[Iter: "
        + rb"\[Epoch (?P<epoch>\d+)/\d+\]\[Iter: (?P<step>\d+)/\d+\](?:lr(?:\(\w+\))?: (?P<lr>[\d.e-]+))?"
        rb"(?=[^\n]{0,200}?, loss: (?P<loss>[\d.]+|nan|inf))"
        rb"(?:(?=[^\n]{0,200}?\btop1: (?P<top1>[\d.]+)))?(?:(?=[^\n]{0,200}?\btop5: (?P<top5>[\d.]+)))?"
    ),
    rate=RATE,
    clock=Clock.ISO,
    settings=(
        *LAUNCHER,
        BATCH,
        Setting("precision", re.compile(rb"ppcls INFO: AMP : *\n"), means="amp"),
        Setting("framework_version", re.compile(rb"train with paddle (?P<value>[\d.]+)")),
    ),
    evaluation=re.compile(rb"\[Eval\]\[Epoch (?P<epoch>\d+)\]\[Avg\][^\n]{0,100}?top1: (?P<top1>[\d.]+)"),
)

STATIC = Format(
    name="paddleclas-static",
    title="PaddleClas 2.x, static graph",
    framework="paddle",
    sign=re.compile(rb"ppcls INFO: epoch:\d+\s+train step:\d+\s[^\n]{0,300}batch_cost: "),
    step=re.compile(
        rb"(?P<wall>\d{4}/\d\d/\d\d \d\d:\d\d:\d\d)\] ppcls INFO: "
        + LATER_COST % rb"epoch:\d+\s+train step:"
        + rb"epoch:(?P<epoch>\d+)\s+train step:(?P<step>\d+)\s+"
        rb"(?:lr: (?P<lr>[\d.e-]+),\s+)?loss:\s+(?P<loss>[\d.]+|nan|inf)\s"
        rb"(?:(?=[^\n]{0,200}?\btop1:\s+(?P<top1>[\d.]+)\s))?"
    ),
    rate=RATE,
    clock=Clock.ISO,
    settings=(
        *LAUNCHER,
        BATCH,
        Setting(
            "world_size", re.compile(rb"DALI Train pipeline with num_shards: (?P<value>\d+)"), convert=int
        ),
        Setting("precision", re.compile(rb"ppcls INFO: AMP : *\n"), means="amp"),
    ),
)

FORMATS = (DYGRAPH, PPCLS, STATIC)
