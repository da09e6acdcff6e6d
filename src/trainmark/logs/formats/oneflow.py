"""OneFlow's own trainers, a line each.

cnns: `train: epoch 0, iter 20, loss: 6.5, …, samples/s: 288.088 [unix time]`; the first interval of an
epoch also holds the checkpoint and the validation before it.
BERT: `step: 19, total_loss: 11.078, mlm_loss: …, throughput: 52.257 [unix time]`.
wide & deep: `[rank:0] iter: 100/1200, loss: 0.083, latency(ms): 2.23 | time`.
Oneflow-Inc/models: `[rank:0] [train], epoch: 0/50, iter: 100/3336, loss: …, throughput: 161.66 | time`;
older ones write `[0]` for the rank and no time. Every rank prints its own speed.
LiBai: `iteration: 99/1000  consumed_samples: 3200  total_loss: …  total_throughput: 1.87 samples/s`; time
and throughput average over every step since the run began, and the date has no year.
"""

import re

from trainmark.events import Scope
from trainmark.logs.format import Format, Kind, Rate, Setting, TimeFormat

# The header of both of OneFlow-Benchmark's trainers, cnns and BERT: `num_nodes = 1`, a line an argument.
TRAINER_HEADER = (
    Setting("nodes", re.compile(rb"\bnum_nodes = (?P<value>\d+)"), convert=int),
    Setting("devices_per_node", re.compile(rb"\bgpu_num_per_node = (?P<value>\d+)"), convert=int),
    Setting("batch_per_device", re.compile(rb"\bbatch_size_per_device = (?P<value>\d+)"), convert=int),
    Setting("precision", re.compile(rb"\buse_fp16 = True"), means="amp"),
    Setting("precision", re.compile(rb"\buse_fp16 = False"), means="fp32"),
    Setting("learning_rate", re.compile(rb"\blearning_rate = (?P<value>[\d.e-]+)"), convert=float),
)

CNNS = Format(
    name="oneflow-cnns",
    title="OneFlow-Benchmark Classification/cnns",
    framework="oneflow",
    sign=re.compile(rb"train: epoch \d+, iter \d+, loss: [^\n]{0,100}samples/s: [\d.]+"),
    step=re.compile(
        rb"train: epoch (?P<epoch>\d+), iter (?P<step>\d+), loss: (?P<loss>[\d.]+|nan|inf)"
        rb"(?:, top_1: (?P<top1>[\d.]+))?(?:, top_k: (?P<top5>[\d.]+))?"
        rb"[^\n]{0,100}?samples/s: (?P<rate>[\d.]+)(?: (?P<wall>\d{10}\.\d+))?"
    ),
    rate=Rate("images", Scope.GLOBAL, Kind.SINCE_LAST),
    clock=TimeFormat.UNIX,
    settings=(
        *TRAINER_HEADER,
        Setting("momentum", re.compile(rb"\bmomentum = (?P<value>[\d.]+)"), convert=float),
    ),
    start=re.compile(rb"Running \w+: num_gpu_per_node = \d+"),
    evaluation=re.compile(
        rb"validation: epoch (?P<epoch>\d+), iter \d+, top_1: (?P<top1>[\d.]+)(?:, top_k: (?P<top5>[\d.]+))?"
    ),
)


BERT = Format(
    name="oneflow-bert",
    title="OneFlow-Benchmark BERT pretraining",
    framework="oneflow",
    sign=re.compile(rb"\bstep: \d+, total_loss: \S+ mlm_loss: \S+ nsp_loss: \S+ throughput: [\d.]+"),
    step=re.compile(
        rb"\bstep: (?P<step>\d+), total_loss: (?P<loss>[\d.]+|nan|inf), mlm_loss: "
        rb"\S+ nsp_loss: \S+ throughput: (?P<rate>[\d.]+)(?: (?P<wall>\d{10}\.\d+))?"
    ),
    rate=Rate("sequences", Scope.GLOBAL, Kind.SINCE_LAST),
    clock=TimeFormat.UNIX,
    settings=TRAINER_HEADER,
)


WIDE_DEEP = Format(
    name="oneflow-wide-deep",
    title="OneFlow Wide & Deep Learning",
    framework="oneflow",
    sign=re.compile(rb"\[rank:\d+\] iter: \d+/\d+, loss: [\d.naif]+, latency\(ms\): [\d.]+"),
    step=re.compile(
        rb"\[rank:(?P<rank>\d+)\] iter: (?P<step>\d+)/\d+, loss: (?P<loss>[\d.]+|nan|inf), "
        rb"latency\(ms\): (?P<ms>[\d.]+)(?: \| (?P<wall>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+))?"
    ),
    rate=Rate("samples", Scope.RANK, Kind.SINCE_LAST),
    clock=TimeFormat.ISO,
)


MODELS = Format(
    name="oneflow-models",
    title="Oneflow-Inc/models",
    framework="oneflow",
    sign=re.compile(rb"\[(?:rank:)?\d+\] \[train\], epoch: \d+/\d+, iter: \d+/\d+, loss: "),
    step=re.compile(
        rb"\[(?:rank:)?(?P<rank>\d+)\] \[train\], epoch: (?P<epoch>\d+)/\d+, iter: (?P<step>\d+)/\d+"
        rb", loss: (?P<loss>[\d.]+|nan|inf)(?:, lr: (?P<lr>[\d.e-]+))?(?:, top1: (?P<top1>[\d.]+))?"
        rb"[^\n]{0,100}?, throughput: (?P<rate>[\d.]+)(?: \| (?P<wall>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+))?"
    ),
    rate=Rate("images", Scope.RANK, Kind.SINCE_LAST, every_rank=True),
    clock=TimeFormat.ISO,
    settings=(
        Setting("nodes", re.compile(rb"\bnum_nodes \.+ (?P<value>\d+)"), convert=int),
        Setting("devices_per_node", re.compile(rb"\bnum_devices_per_node \.+ (?P<value>\d+)"), convert=int),
        Setting("batch_per_device", re.compile(rb"\btrain_batch_size \.+ (?P<value>\d+)"), convert=int),
        Setting("global_batch", re.compile(rb"\btrain_global_batch_size \.+ (?P<value>\d+)"), convert=int),
        Setting("precision", re.compile(rb"\buse_fp16 \.+ True"), means="amp"),
        Setting("precision", re.compile(rb"\buse_fp16 \.+ False"), means="fp32"),
    ),
    evaluation=re.compile(
        rb"\[(?:rank:)?0\] \[eval\], epoch: (?P<epoch>\d+)/\d+, iter: \d+/\d+, "
        rb"[^\n]{0,60}?top1: (?P<top1>[\d.]+)"
    ),
)


LIBAI = Format(
    name="oneflow-libai",
    title="OneFlow LiBai",
    framework="oneflow",
    sign=re.compile(rb"\biteration: \d+/\d+ [^\n]{0,400}\btotal_throughput: [\d.]+ samples/s"),
    step=re.compile(
        rb"(?:\[\d\d/\d\d (?P<wall>\d\d:\d\d:\d\d) [^\]\n]{0,80}\]:[^\n]{0,80}?)?"
        rb"\biteration: (?P<step>\d+)/\d+"
        rb"(?=[^\n]{0,400}?total_throughput: (?P<rate>[\d.]+) samples/s)"
        rb"(?:(?=[^\n]{0,400}?\btotal_loss: (?P<loss>[\d.e+-]+|nan|inf)))?"
        rb"(?:(?=[^\n]{0,400}? time: (?P<seconds>[\d.]+) s/iter))?"
        rb"(?:(?=[^\n]{0,400}? lr: (?P<lr>[\d.e+-]+)))?"
    ),
    rate=Rate("samples", Scope.GLOBAL, Kind.CUMULATIVE),
    clock=TimeFormat.TIME_OF_DAY,
    settings=(
        Setting("world_size", re.compile(rb"\bworld size: (?P<value>\d+)", re.IGNORECASE), convert=int),
        Setting("batch_per_device", re.compile(rb"\btrain_micro_batch_size: (?P<value>\d+)"), convert=int),
        Setting("global_batch", re.compile(rb"\bglobal_batch_size: (?P<value>\d+)"), convert=int),
        Setting("precision", re.compile(rb"\bamp: \{enabled: true\}|\bamp\.enabled=True"), means="amp"),
    ),
)
