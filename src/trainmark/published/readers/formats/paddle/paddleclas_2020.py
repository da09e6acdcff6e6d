"""PaddleClas of 2020: `… INFO: epoch:0   train step:769  loss: … elapse: 0.183s ips: 1137.76 images/sec.`

`elapse` and `ips` are of one device, and run on as means: of steps 0 to 4, then of all since step 5.
The clock shows whole seconds. `TRAIN.batch_size` in the dumped configuration is of all devices together.
"""

import re

from trainmark.events import Scope
from trainmark.published.readers.format import Clock, Format, Kind, Rate, Setting
from trainmark.published.readers.formats._printed_batch import from_time_and_rate


def devices_of(text: str) -> int:
    """The whole batch, from the configuration, over that of one device, from the first progress line."""
    devices, rest = divmod(int(text.split()[0]), from_time_and_rate(text.rpartition("elapse: ")[2]))
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

FORMAT = Format(
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
    clock=Clock.ISO,
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
            convert=from_time_and_rate,
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
