"""NVIDIA's BERT pre-training for TensorFlow: `… Iteration: 3  throughput_train : 142.94 seq/s mlm_loss : …`.

Rank 0 prints the rate of all ranks since its line before; the rate at the end averages them all. While the
loss scale is still too high a skipped iteration is done again under the same number.
"""

import re

from trainmark.events import Scope
from trainmark.published.readers.format import Format, Kind, Rate, Setting
from trainmark.published.readers.formats.nvidia.dllogger import STAMP

STEP = STAMP + rb"Iteration: (?P<step>\d+)  throughput_train : "

FORMAT = Format(
    name="ngc-bert-tensorflow",
    title="NVIDIA's BERT pre-training for TensorFlow",
    framework="tensorflow",
    sign=re.compile(STEP),
    step=re.compile(
        STEP + rb"(?P<rate>\S+) seq(?:uence)?s?/s"
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
