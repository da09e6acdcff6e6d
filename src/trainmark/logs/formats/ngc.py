"""NVIDIA's BERT pre-training and MXNet ResNet-50, as its NGC containers ran them.

BERT for PyTorch, `… Training Epoch: 0 Training Iteration: 1  average_loss : 11.2 …`, prints no rate: an
iteration is batch × accumulation × ranks sequences, and the time stamps tell the rest. For TensorFlow, `…
Iteration: 3  throughput_train : 142.94 seq/s mlm_loss : …`, rank 0 prints the rate of all ranks since its
line before; the rate at the end averages them all. While the loss scale is still too high a skipped
iteration is done again under the same number.
MXNet, `[1,7]<stderr>:2020-12-16 08:09:30,473:INFO: Epoch[0] Batch [20-39] Speed: …`: every rank prints the
rate of all ranks over the batches named. `batch_size` is the whole job's. Its benchmark script runs one
device count after the other into the same file.
"""

import math
import re

from trainmark.events import Scope
from trainmark.logs.format import Format, Kind, Rate, Setting
from trainmark.logs.formats.dllogger import APEX_LOSS_SCALE, NUMBER, STAMP, WITHIN, parameter

BERT_PYTORCH_STEP = STAMP + rb"Training Epoch: (?P<epoch>\d+) Training Iteration: (?P<step>\d+)  "


def launched_processes(options: str) -> int:
    """Processes that torch.distributed.launch starts: those of a node times the nodes, one if not said."""
    return math.prod(int(number) for number in re.findall(r"--(?:nproc_per_node|nnodes)[= ](\d+)", options))


def config_argument(key: bytes, value: bytes) -> re.Pattern[bytes]:
    return re.compile(WITHIN + rb"[ (]%b=%b" % (key, value))


BERT_PYTORCH = Format(
    name="ngc-bert-pytorch",
    title="NVIDIA's BERT pre-training for PyTorch",
    framework="pytorch",
    sign=re.compile(BERT_PYTORCH_STEP + rb"(?:average|final)_loss : "),
    step=re.compile(
        BERT_PYTORCH_STEP
        + rb"(?:average|final)_loss : (?P<loss>[^\s]+)(?:  step_loss : \S+  learning_rate : (?P<lr>\S+))?\s"
    ),
    rate=Rate("sequences", Scope.GLOBAL, Kind.SINCE_LAST),
    settings=(
        parameter("batch_per_device", rb"batch_size_per_gpu", rb"\d+", int),
        Setting(
            "accumulation", config_argument(rb"gradient_accumulation_steps", rb"(?P<value>\d+)"), convert=int
        ),
        Setting(
            "world_size",
            re.compile(
                rb"torch\.distributed\.launch (?P<value>[^\n]{0,100}?--nproc_per_node[^\n]{0,200}?) \S+\.py"
            ),
            convert=launched_processes,
        ),
        Setting("precision", config_argument(rb"amp", rb"True"), "amp"),
        Setting("precision", config_argument(rb"fp16", rb"True"), "fp16"),
        Setting("precision", config_argument(rb"fp16", rb"False"), "fp32"),
        APEX_LOSS_SCALE,
        parameter("learning_rate", rb"learning_rate", NUMBER, float),
    ),
    start=re.compile(rb"torch\.distributed\.launch | - PARAMETER Config : "),
    summary=re.compile(
        rb" -  e2e_train_time : (?P<seconds>\S+)  training_sequences_per_second : (?P<rate>\S+)"
        rb"(?:  final_loss : (?P<loss>\S+))?"
    ),
)


BERT_TENSORFLOW_STEP = STAMP + rb"Iteration: (?P<step>\d+)  throughput_train : "

BERT_TENSORFLOW = Format(
    name="ngc-bert-tensorflow",
    title="NVIDIA's BERT pre-training for TensorFlow",
    framework="tensorflow",
    sign=re.compile(BERT_TENSORFLOW_STEP),
    step=re.compile(
        BERT_TENSORFLOW_STEP + rb"(?P<rate>\S+) seq(?:uence)?s?/s"
        rb"(?:[^\n]{0,400}? total_loss : (?P<loss>\S+) [^\n]{0,400}?learning_rate : (?P<lr>\S+))?"
    ),
    rate=Rate("sequences", Scope.GLOBAL, Kind.SINCE_LAST),
    settings=(
        Setting(
            "batch_per_device",
            re.compile(
                rb"\*\*\* Running training \*\*\*(?:[^\n]{0,200}\n){1,4}?"
                rb"[^\n]{0,200}?  Batch size = (?P<value>\d+)"
            ),
            convert=int,
        ),
        # The launch script names the folder of results after its precision and its global batches.
        Setting("precision", re.compile(rb"tf_bert_pretraining_\w{1,40}?_(?P<value>fp16|fp32)_gbs")),
        Setting("global_batch", re.compile(rb"_gbs1(?P<value>\d+)_gbs2\d+_\d+/phase_1\b"), convert=int),
        Setting("loss_scale", re.compile(rb"throughput_train [^\n]{0,400}? loss_scaler : \d+"), "dynamic"),
    ),
    start=re.compile(rb"\*\*\* Running training \*\*\*"),
    summary=re.compile(rb" -  throughput_train : (?P<rate>\S+) seq(?:uence)?s?/s"),
)


MXNET_STEP = rb"INFO: Epoch\[(?P<epoch>\d+)\] Batch \[(?P<step>\d+)-(?P<last_step>\d+)\]\s+Speed: "
MXNET_NUMBER = rb"(?P<value>[-+.\deE]+)"


def mxnet_argument(key: bytes, value: bytes) -> re.Pattern[bytes]:
    return re.compile(rb"Start with arguments Namespace\((?:(?!Namespace\()[^\n])*?\b%b=%b" % (key, value))


MXNET = Format(
    name="ngc-mxnet",
    title="NVIDIA's MXNet ResNet-50",
    framework="mxnet",
    sign=re.compile(MXNET_STEP),
    step=re.compile(
        rb"(?P<wall>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+):"
        + MXNET_STEP
        + rb"(?P<rate>\S+) samples/sec(?:\s+LR: (?P<lr>\S+))?"
    ),
    rate=Rate("images", Scope.GLOBAL, Kind.SINCE_LAST, every_rank=True),
    settings=(
        Setting("global_batch", mxnet_argument(rb"batch_size", rb"(?P<value>\d+)"), convert=int),
        Setting("world_size", re.compile(rb"NCCL INFO comm \w+ rank \d+ nranks (?P<value>\d+)"), convert=int),
        Setting("precision", mxnet_argument(rb"amp", rb"True"), "amp"),
        Setting("precision", mxnet_argument(rb"dtype", rb"'float16'"), "fp16"),
        Setting("precision", mxnet_argument(rb"dtype", rb"'float32'"), "fp32"),
        Setting("layout", mxnet_argument(rb"conv_layout", rb"'(?P<value>\w+)'")),
        Setting("learning_rate", mxnet_argument(rb"lr", MXNET_NUMBER), convert=float),
        Setting("momentum", mxnet_argument(rb"mom", MXNET_NUMBER), convert=float),
    ),
    start=re.compile(rb"INFO: Start with arguments Namespace\("),
    evaluation=re.compile(rb"INFO: Epoch\[(?P<epoch>\d+)\] Validation-accuracy=(?P<top1>[\d.]+)"),
    summary=re.compile(rb"INFO: Experiment took: (?P<seconds>[\d.]+) sec"),
)
