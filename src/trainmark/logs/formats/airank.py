"""AI-Rank: the lines that its rules ask of a submission, and the trainers whose logs were submitted.

`- AI-Rank-log 1618119359.842 eval_accuracy:48.19, …` tells the accuracy after an epoch, by time of day, and
what the submitter concludes, not the speed of a step; the trainers' own lines do. Accuracies are fractions
by the rules, and percentages in some submissions. MMSegmentation and Detectron2 print the seconds of an
iteration, averaged since their line before. GluonCV and TSM time the last batch alone, so that their lines
in between are not seen at all.
"""

import re

from trainmark.events import Scope
from trainmark.logs.format import Format, Kind, Rate, Setting, TimeFormat

EVENT = rb"AI-Rank-log (?P<wall>\d{10}(?:\.\d+)?) "
ACCURACY = rb"eval_accuracy:(?P<top1>[^\s,]+),\s*total_epoch_cnt:(?P<epoch>\d+)"
EVALUATION = re.compile(EVENT + ACCURACY)
SUMMARY = re.compile(
    rb"AI-Rank-log \d{10}(?:\.\d+)? (?:target_quality_time:(?P<target_quality_time>[\d.]+)"
    rb"|total_use_time:(?P<seconds>[\d.]+)|avg_ips:(?P<rate>[\d.]+))"
)

AIRANK = Format(
    name="airank",
    title="AI-Rank's log lines",
    framework=None,
    # Once in a run: a trainer's own lines among these are to be read as that trainer's.
    sign=re.compile(EVENT + rb"test_begin"),
    step=EVALUATION,
    clock=TimeFormat.UNIX,
    evaluation=EVALUATION,
    summary=SUMMARY,
)


# Up to the next of its kind, so that a line of many takes no longer than its length.
ARGUMENTS = rb"(?:(?!Namespace\()[^\n])*?"

MMSEGMENTATION = Format(
    name="mmsegmentation",
    title="MMSegmentation",
    framework="pytorch",
    sign=re.compile(rb" - mmseg - INFO - Iter \[\d+/\d+\]\s"),
    step=re.compile(
        rb"(?P<wall>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+) - mmseg - INFO - Iter \[(?P<step>\d+)/\d+\]\s+"
        rb"lr: (?P<lr>[^\s,]+), [^\n]{0,400}?\btime: (?P<seconds>[\d.]+), "
        rb"[^\n]{0,400}?, loss: (?P<loss>[^\s,]+)"
    ),
    rate=Rate("images", Scope.RANK, Kind.SINCE_LAST),
    settings=(
        Setting("batch_per_device", re.compile(rb"samples_per_gpu=(?P<value>\d+)"), convert=int),
        Setting("world_size", re.compile(rb"Distributed training: False"), 1),
        # Old versions name one device here however many there are.
        Setting("world_size", re.compile(rb"\bgpu_ids = range\(0, (?P<value>[2-9]|\d{2,})\)"), convert=int),
        Setting("precision", re.compile(rb"\nfp16 = dict\("), "fp16"),
    ),
    start=re.compile(rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+ - mmseg - INFO - Environment info:"),
    evaluation=EVALUATION,
    summary=SUMMARY,
)

# In a file, and on the console.
DETECTRON2_HEAD = rb"d2\.utils\.events(?: INFO: |\]: )"

DETECTRON2 = Format(
    name="detectron2",
    title="Detectron2",
    framework="pytorch",
    sign=re.compile(DETECTRON2_HEAD + rb"(?:AI-Rank-log )? ?eta: [^\n]{0,400}? iter: \d+ "),
    step=re.compile(
        rb"\[\d\d/\d\d (?P<wall>\d\d:\d\d:\d\d)\]? "
        + DETECTRON2_HEAD
        + rb"[^\n]{0,400}? iter: (?P<step>\d+)  "
        rb"total_loss: (?P<loss>\S+) [^\n]{0,400}?  time: (?P<seconds>[\d.]+)  [^\n]{0,400}?lr: (?P<lr>\S+)"
    ),
    rate=Rate("images", Scope.GLOBAL, Kind.SINCE_LAST),
    clock=TimeFormat.TIME_OF_DAY,
    settings=(
        Setting("world_size", re.compile(rb"\. World size: (?P<value>\d+)"), convert=int),
        Setting("global_batch", re.compile(rb"\bIMS_PER_BATCH: (?P<value>\d+)"), convert=int),
        Setting("learning_rate", re.compile(rb"\bBASE_LR: (?P<value>[\d.eE-]+)"), convert=float),
        Setting("momentum", re.compile(rb"\n  MOMENTUM: (?P<value>[\d.]+)"), convert=float),
        Setting("precision", re.compile(rb"\bAMP:\n +ENABLED: True"), "amp"),
        Setting("precision", re.compile(rb"\bAMP:\n +ENABLED: False"), "fp32"),
    ),
    start=re.compile(rb"\[\d\d/\d\d [\d:]{8}\]? detectron2(?: INFO: |\]: )Rank of current process: 0\."),
    evaluation=EVALUATION,
    summary=SUMMARY,
)


def listed(numbers: str) -> int:
    """How many devices `0,1,2` names."""
    return len(numbers.split(","))


def argument(key: bytes, value: bytes) -> re.Pattern[bytes]:
    return re.compile(rb"Namespace\(" + ARGUMENTS + rb"\b%b=%b" % (key, value))


# One process drives all its devices with the whole batch, unless Horovod starts one process a device.
GLUONCV = Format(
    name="gluoncv",
    title="GluonCV detection",
    framework="mxnet",
    sign=re.compile(rb"\[Epoch \d+\]\[Batch \d+\], (?:LR: \S+, )?Speed: [\d.]+ samples/sec, "),
    step=re.compile(
        rb"\[Epoch (?P<epoch>\d+)\]\[Batch (?P<step>\d+)\], (?:LR: (?P<lr>[^\s,]+), )?"
        rb"Speed: (?P<rate>[\d.]+) samples/sec"
    ),
    rate=Rate("images", Scope.GLOBAL, Kind.INSTANT),
    settings=(
        Setting(
            "global_batch",
            argument(rb"batch_size", rb"(?P<value>\d+)" + ARGUMENTS + rb" horovod=False"),
            None,
            int,
        ),
        Setting("world_size", argument(rb"gpus", rb"'(?P<value>[\d,]+)', horovod=False"), convert=listed),
        Setting("precision", argument(rb"amp", rb"True"), "amp"),
        Setting("precision", argument(rb"amp", rb"False"), "fp32"),
        Setting("learning_rate", argument(rb"lr", rb"(?P<value>[\d.eE-]+)"), convert=float),
        Setting("momentum", argument(rb"momentum", rb"(?P<value>[\d.]+)"), convert=float),
    ),
    start=re.compile(rb"\bNamespace\(" + ARGUMENTS + rb"batch_size="),
    evaluation=EVALUATION,
    summary=SUMMARY,
)

TSM = Format(
    name="tsm",
    title="Temporal Shift Module",
    framework="pytorch",
    sign=re.compile(rb"Epoch: \[\d+\]\[\d+/\d+\], lr: \S+\s+Time "),
    step=re.compile(
        rb"Epoch: \[(?P<epoch>\d+)\]\[(?P<step>\d+)/\d+\], lr: (?P<lr>\S+)\s+Time (?P<seconds>[\d.]+) "
        rb"[^\n]{0,400}?Loss (?P<loss>\S+) "
    ),
    rate=Rate("videos", Scope.RANK, Kind.INSTANT),
    evaluation=EVALUATION,
    summary=SUMMARY,
)
