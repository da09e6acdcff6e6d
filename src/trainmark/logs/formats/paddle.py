"""PaddlePaddle's suites: PaddleClas of 2020 and 2.x, PaddleSeg, PaddleNLP.

PaddleClas of 2020: `… INFO: epoch:0   train step:769  loss: … elapse: 0.183s ips: 1137.76 images/sec.`.
`elapse` and `ips` are of one device, and run on as means: of steps 0 to 4, then of all since step 5. The
clock shows whole seconds. `TRAIN.batch_size` in the dumped configuration is of all devices.
PaddleClas 2.x: `… batch_cost: 0.59293 s, reader_cost: 0.00416 s, ips: 107.93876 images/sec`. Times and
rates are of one device, means over the steps of the epoch so far.
PaddleSeg: `[TRAIN] epoch: 1, iter: 10/200, loss: 1.6422, …, batch_cost: 0.32, …, ips: 12.34 samples/sec`.
Costs and rates are of one device, since the line before.
PaddleNLP: `global step 500, epoch: 0, batch: 499, loss: …, ips: 149.18 sequences/s`, and others of it.
Rates are of one device. Between the loss and `ips` stands `speed: 4.66 step/s`, later the cost of a batch.
"""

import re

from trainmark.events import Scope
from trainmark.logs.format import Format, Kind, Rate, Setting, TimeFormat
from trainmark.logs.formats._common import (
    LOSS,
    NUMBER,
    batch_from_speed_and_rate,
    batch_from_time_and_rate,
    count,
)


def devices_of(text: str) -> int:
    """The whole batch, from the configuration, over that of one device, from the first progress line."""
    devices, rest = divmod(int(text.split()[0]), batch_from_time_and_rate(text.rpartition("elapse: ")[2]))
    if rest:
        raise ValueError("the whole batch is not a multiple of one device's")
    return devices


def devices(text: str) -> int:
    """How many devices `0,1,2` names."""
    return text.count(",") + 1


LAUNCHER = (
    Setting("world_size", re.compile(rb"\| +PADDLE_TRAINERS_NUM +(?P<value>\d+) +\|"), convert=int),
    # Where no other host is named, the devices of this one are all.
    Setting(
        "world_size",
        re.compile(
            rb"paddle\.distributed\.launch (?![^\n]*--(?:ips|nnodes|master|cluster_node_ips|nproc_per_node))"
            rb"[^\n]*?--(?:gpus|devices|selected_gpus)[= ]\"?(?P<value>\d+(?:,\d+)*)"
        ),
        convert=devices,
        late=True,  # benchmark scripts print their command at the end
    ),
    Setting(
        "world_size",
        re.compile(
            rb"LAUNCH INFO [^\n]{0,40} devices: (?P<value>\d+(?:,\d+)*)\n"
            rb"(?:LAUNCH INFO [^\n]*\n){0,20}?LAUNCH INFO [^\n]{0,40} nnodes: 1\n"
        ),
        convert=devices,
    ),
    Setting(
        "devices_per_node",
        re.compile(rb"Configuration Arguments -+\s+gpus: (?P<value>\d+(?:,\d+)*)"),
        convert=devices,
    ),
)

CLAS_2020 = Format(
    name="paddleclas-2020",
    title="PaddleClas, static graph (2020)",
    framework="paddle",
    sign=re.compile(rb"INFO: epoch:\d+\s+train step:\d+\s+loss: [^\n]{0,200}elapse: [\d.]+s ips: "),
    # The means of steps 0 to 4 are of another stretch than all later ones, so they are left out.
    step=re.compile(
        rb"(?P<wall>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) INFO: (?:(?!epoch:\d+ +train step:[0-4] )"
        rb"(?=[^\n]{0,200} elapse: (?P<seconds>[\d.]+)s ips: (?P<rate>[\d.]+) images/sec))?"
        rb"epoch:(?P<epoch>\d+)\s+train step:(?P<step>\d+)\s+loss:\s+(?P<loss>[\d.]+|nan|inf)\s+"
        rb"(?:top1: (?P<top1>[\d.]+)\s+)?(?:top5: (?P<top5>[\d.]+)\s+)?(?:lr: (?P<lr>[\d.]+))?"
    ),
    rate=Rate("images", Scope.RANK, Kind.CUMULATIVE),
    clock=TimeFormat.ISO,
    settings=(
        *LAUNCHER,
        Setting(
            "world_size",
            re.compile(
                rb"INFO: TRAIN : *\n[^\n]* batch_size : (?P<value>\d+\n(?:[^\n]{0,600}\n){0,200}?"
                rb"[^\n]{0,60} train step:[^\n]{0,200} elapse: [\d.]+s ips: [\d.]+)"
            ),
            convert=devices_of,
        ),
        Setting(
            "global_batch", re.compile(rb"INFO: TRAIN : *\n[^\n]* batch_size : (?P<value>\d+)"), convert=int
        ),
        Setting(
            "batch_per_device",
            re.compile(rb"train step:[^\n]{0,200}elapse: (?P<value>[\d.]+s ips: [\d.]+)"),
            convert=batch_from_time_and_rate,
        ),
        Setting("precision", re.compile(rb"INFO: use_(?:amp|pure_fp16) : True"), means="amp"),
        # The dump is sorted and whole: neither key is set where it would stand.
        Setting(
            "precision",
            re.compile(
                rb"INFO: total_images : \d+\n(?:[^\n]*INFO: use_\w+ : \w+\n)+[^\n]*INFO: valid_interval"
            ),
            means="fp32",
        ),
        Setting("loss_scale", re.compile(rb"INFO: use_dynamic_loss_scaling : True"), means="dynamic"),
        Setting("loss_scale", re.compile(rb"INFO: scale_loss : (?P<value>[\d.]+)"), convert=float),
        Setting("layout", re.compile(rb"INFO: data_format : (?P<value>NCHW|NHWC)")),
        Setting("momentum", re.compile(rb"INFO: +momentum : (?P<value>[\d.]+)"), convert=float),
        Setting("learning_rate", re.compile(rb"INFO: +lr : (?P<value>[\d.]+)"), convert=float),
    ),
    start=re.compile(rb"== +PaddleClas is powered by PaddlePaddle"),
    evaluation=re.compile(rb"END epoch:(?P<epoch>\d+)\s+valid [^\n]{0,60}?top1: (?P<top1>[\d.]+)"),
    summary=re.compile(
        rb"END epoch:\d+\s+train [^\n]{0,100}?elapse_sum: (?P<seconds>[\d.]+)s ips: (?P<rate>[\d.]+)"
    ),
)


CLAS_RATE = Rate("images", Scope.RANK, Kind.CUMULATIVE)

# As in 2020, the means begin anew at step 5; those of the steps before are left out.
LATER_COST = (
    rb"(?:(?!%b[0-4][ /])(?=[^\n]{0,300} batch_cost: (?P<seconds>[\d.]+) ?s, reader_cost: [\d.]+(?: s)?, "
    rb"ips: (?P<rate>[\d.]+) (?:images|samples)/s))?"
)
CLAS_BATCH = Setting(
    "batch_per_device",
    re.compile(
        rb"(?:train step:|\[Train\])[^\n]{0,300}"
        rb"batch_cost: (?P<value>[\d.]+ ?s, reader_cost: [\d.]+[ s]*, ips: [\d.]+)"
    ),
    convert=batch_from_time_and_rate,
)

CLAS_DYGRAPH = Format(
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
    rate=CLAS_RATE,
    clock=TimeFormat.ISO,
    settings=(*LAUNCHER, CLAS_BATCH),
    evaluation=re.compile(rb"END epoch:(?P<epoch>\d+)\s*,? valid [^\n]{0,60}?top1: (?P<top1>[\d.]+)"),
)

CLAS_PPCLS = Format(
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
    rate=CLAS_RATE,
    clock=TimeFormat.ISO,
    settings=(
        *LAUNCHER,
        CLAS_BATCH,
        Setting("precision", re.compile(rb"ppcls INFO: AMP : *\n"), means="amp"),
        Setting("framework_version", re.compile(rb"train with paddle (?P<value>[\d.]+)")),
    ),
    evaluation=re.compile(rb"\[Eval\]\[Epoch (?P<epoch>\d+)\]\[Avg\][^\n]{0,100}?top1: (?P<top1>[\d.]+)"),
)

CLAS_STATIC = Format(
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
    rate=CLAS_RATE,
    clock=TimeFormat.ISO,
    settings=(
        *LAUNCHER,
        CLAS_BATCH,
        Setting(
            "world_size", re.compile(rb"DALI Train pipeline with num_shards: (?P<value>\d+)"), convert=int
        ),
        Setting("precision", re.compile(rb"ppcls INFO: AMP : *\n"), means="amp"),
    ),
)


SEG = Format(
    name="paddleseg",
    title="PaddleSeg",
    framework="paddle",
    sign=re.compile(rb"\[TRAIN\] epoch: \d+, iter: \d+/\d+, loss: [^\n]{0,200}?ips: [\d.]+ samples/sec"),
    step=re.compile(
        rb"(?P<wall>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) \[INFO\]\s+"
        rb"\[TRAIN\] epoch: \d+, iter: (?P<step>\d+)/\d+, loss: (?P<loss>%b), (?:lr: (?P<lr>%b), )?"
        % (LOSS, NUMBER)
        + rb"[^\n]{0,200}?\bips: (?P<rate>%b) samples/sec" % NUMBER
    ),
    rate=Rate("samples", Scope.RANK, Kind.SINCE_LAST),
    settings=(
        count("world_size", rb"\bGPUs used: (?P<value>\d+)"),
        *LAUNCHER,
        count("batch_per_device", rb"\nbatch_size: (?P<value>\d+)"),
    ),
    start=re.compile(rb"-Environment Information-"),
    evaluation=re.compile(rb"\[EVAL\] [^\n]{0,60}?mIoU: (?P<top1>[\d.]+)"),
)


NLP_PRETRAINING = Format(
    name="paddlenlp",
    title="PaddleNLP pretraining",
    framework="paddle",
    sign=re.compile(
        rb"\bglobal step \d+, epoch: \d+, batch: \d+, loss: [^\n]{0,200}ips ?: ?[\d.]+ sequences/s"
    ),
    step=re.compile(
        rb"\bglobal step (?P<step>\d+), epoch: (?P<epoch>\d+), batch: \d+, loss: (?P<loss>[\d.]+|nan|inf)"
        rb"(?=[^\n]{0,200}?, ips ?: ?(?P<rate>[\d.]+) sequences/s)"
        rb"(?:(?=[^\n]{0,200}?batch_cost: (?P<seconds>[\d.]+) s))?"
    ),
    rate=Rate("sequences", Scope.RANK, Kind.SINCE_LAST),
    start=re.compile(rb" Configuration Arguments -"),
    settings=(
        *LAUNCHER,
        Setting("batch_per_device", re.compile(rb"'--batch_size', '(?P<value>\d+)'"), convert=int),
        Setting(
            "batch_per_device",
            re.compile(rb"speed: (?P<value>[\d.]+ steps?/s, ips ?: ?[\d.]+) sequences/s"),
            convert=batch_from_speed_and_rate,
        ),
        Setting("precision", re.compile(rb"'--use_amp', 'True'"), means="amp"),
        Setting("precision", re.compile(rb"'--use_amp', 'False'"), means="fp32"),
        Setting("learning_rate", re.compile(rb"'--learning_rate', '(?P<value>[\d.e-]+)'"), convert=float),
    ),
)

# `tobal` is how the program spells it in some versions.
NLP_STATIC = Format(
    name="paddlenlp-static",
    title="PaddleNLP pretraining, static graph",
    framework="paddle",
    sign=re.compile(
        rb"\bto[bt]al step: \d+, epoch: \d+, batch: \d+, loss: [^\n]{0,200}ips: [\d.]+ sequences/s"
    ),
    step=re.compile(
        rb"\bto[bt]al step: (?P<step>\d+), epoch: (?P<epoch>\d+), batch: \d+, loss: (?P<loss>%b)" % LOSS
        + rb"(?=[^\n]{0,200}?\bips: (?P<rate>%b) sequences/s)" % NUMBER
    ),
    rate=Rate("sequences", Scope.RANK, Kind.SINCE_LAST),
    start=re.compile(rb"^Namespace\(adam_epsilon=", re.MULTILINE),
    settings=(
        *LAUNCHER,
        count("batch_per_device", rb"Namespace\(adam_epsilon=[^\n]{0,200}?\bbatch_size=(?P<value>\d+)"),
        Setting("precision", re.compile(rb"\buse_pure_fp16=True"), means="fp16"),
        Setting("precision", re.compile(rb"\buse_amp=True"), means="amp"),
        Setting("precision", re.compile(rb"\buse_amp=False"), means="fp32"),
    ),
)

NLP_TRANSFORMER = Format(
    name="paddlenlp-transformer",
    title="PaddleNLP machine translation",
    framework="paddle",
    sign=re.compile(rb"\bstep_idx: \d+, epoch: \d+, batch: \d+, avg loss: [^\n]{0,300}?ips: [\d.]+ words/s"),
    step=re.compile(
        rb"(?:\[?(?P<wall>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+)\]?[^\n]{0,40}?)?"
        rb"\bstep_idx: (?P<step>\d+), epoch: (?P<epoch>\d+), batch: \d+, avg loss: (?P<loss>%b),"
        % LOSS
        + rb"(?=[^\n]{0,300}?\bips: (?P<rate>%b) words/s)" % NUMBER
    ),
    rate=Rate("tokens", Scope.RANK, Kind.SINCE_LAST),
    settings=(
        *LAUNCHER,
        Setting("world_size", re.compile(rb"'is_distributed': False"), means=1),
        Setting("precision", re.compile(rb"'use_pure_fp16': True"), means="fp16"),
        Setting("precision", re.compile(rb"'use_amp': True"), means="amp"),
    ),
)
