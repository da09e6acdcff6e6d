"""MMEngine: `07/03 13:04:17 - mmengine - INFO - Epoch(train)  [1][ 10/196]  lr: … time: 0.4073  …`.

The time of an iteration, averaged since the line before. Also its JSON lines (`vis_data/*.json`), and MMCV
before it, in text and in JSON (`*.log.json`).
"""

import re

from trainmark.events import Scope
from trainmark.logs.format import Format, Kind, Rate
from trainmark.logs.formats._common import LOSS, NUMBER, count, fixed

RATE = Rate("images", Scope.RANK, Kind.SINCE_LAST)
TRAIN_BATCH = count(
    "batch_per_device",
    rb"\btrain_dataloader = dict\((?:(?!_dataloader)[^)]){0,2000}?\bbatch_size=(?P<value>\d+)",
)
DEVICES = (
    count("world_size", rb"\bGPU number: (?P<value>\d+)"),
    fixed("world_size", rb"\bDistributed training: False", 1),
)

TEXT = Format(
    name="mmengine",
    title="MMEngine",
    framework="pytorch",
    sign=re.compile(rb" - mm\w+ - INFO - (?:Epoch|Iter)\(train\) +\["),
    step=re.compile(
        rb" - mm\w+ - INFO - (?:Epoch\(train\) +\[(?P<epoch>\d+)\]|Iter\(train\) +)"
        rb"\[ *(?P<step>\d+)/\d+\] +(?:base_lr: \S+ +)?lr: (?P<lr>%b) +"
        % NUMBER
        + rb"[^\n]{0,120}?\btime: (?P<seconds>%b)\s" % NUMBER
        + rb"(?:[^\n]{0,200}? loss: (?P<loss>%b)\s)?" % LOSS
    ),
    rate=RATE,
    settings=(TRAIN_BATCH, *DEVICES),
    start=re.compile(rb" - mm\w+ - INFO - *\n-{20,}\nSystem environment:"),
)

MMCV = Format(
    name="mmcv",
    title="MMCV (MMDetection and others, before MMEngine)",
    framework="pytorch",
    sign=re.compile(rb" - mm(?!seg)\w+ - INFO - (?:Epoch \[\d+\]|Iter )\[\d+/\d+\]\s+lr: "),
    step=re.compile(
        rb"(?P<wall>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+) - mm(?!seg)\w+ - INFO - "
        rb"(?:Epoch \[(?P<epoch>\d+)\]|Iter )\[(?P<step>\d+)/\d+\]\s+lr: (?P<lr>%b), "
        % NUMBER
        + rb"[^\n]{0,120}?\btime: (?P<seconds>%b), " % NUMBER
        + rb"(?:[^\n]{0,400}?\bloss: (?P<loss>%b)[,\s])?" % LOSS
    ),
    rate=RATE,
    settings=(
        count("batch_per_device", rb"\bsamples_per_gpu=(?P<value>\d+)"),
        fixed("world_size", rb"\bDistributed training: False", 1),
        count("world_size", rb"\bgpu_ids = range\(0, (?P<value>[2-9]|\d{2,})\)"),
    ),
    start=re.compile(rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+ - mm\w+ - INFO - Environment info:"),
)

JSON = Format(
    name="mmengine-json",
    title="MMEngine's and MMCV's JSON lines",
    framework="pytorch",
    sign=re.compile(
        rb'\{"mode": "train", "epoch": \d+, "iter": \d+,'
        rb'|"data_time": [\d.]+, [^\n}]{0,600}?"iter": \d+, "memory": '
    ),
    step=re.compile(
        rb'^\{(?!"mode": "val")(?=[^\n}]{0,800}?"time": (?P<seconds>%b)[,}])' % NUMBER
        + rb'(?=[^\n}]{0,800}?"iter": (?P<step>\d+)[,}])'
        + rb'(?:(?="mode": "train", "epoch": (?P<epoch>\d+),))?'
        + rb'(?:(?=[^\n}]{0,800}?"loss": (?P<loss>%b)[,}]))?' % LOSS,
        re.MULTILINE,
    ),
    rate=RATE,
    settings=(count("batch_per_device", rb'"config": "[^\n]{0,20000}?samples_per_gpu=(?P<value>\d+)'),),
)
