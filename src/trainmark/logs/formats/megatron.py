"""Megatron-LM and Megatron-DeepSpeed: ` iteration 10/ 500 | … | elapsed time per iteration (ms): 870.2 | …`.

The time is a mean since the line before. The global batch stands on the line in later versions, so that a
ramp-up of the batch is counted right, and among the arguments in all.
"""

import re

from trainmark.events import Scope
from trainmark.logs.format import Format, Kind, Rate
from trainmark.logs.formats._common import LOSS, NUMBER, count, fixed

LINE = rb"\biteration +(?P<step>\d+)/ *\d+ \|"
# Fields of a line end in ` |`, so that none that was cut is taken for whole.
UNTIL = rb"[^\n]{0,600}?"

FORMAT = Format(
    name="megatron",
    title="Megatron-LM",
    framework="pytorch",
    sign=re.compile(rb"\biteration +\d+/ *\d+ \| [^\n]{0,300}?elapsed time per iteration \((?:ms|s)\): "),
    step=re.compile(
        LINE
        + rb"(?="
        + UNTIL
        + rb"elapsed time per iteration \((?:ms\): (?P<ms>%b)|s\): (?P<seconds>%b)) \|)" % (NUMBER, NUMBER)
        + rb"(?:(?="
        + UNTIL
        + rb"\bglobal batch size: +(?P<step_samples>\d+) \|))?"
        + rb"(?:(?="
        + UNTIL
        + rb"\blearning rate: (?P<lr>%b) \|))?" % NUMBER
        + rb"(?:(?="
        + UNTIL
        + rb"\blm loss: (?P<loss>%b) \|))?" % LOSS
    ),
    rate=Rate("samples", Scope.GLOBAL, Kind.SINCE_LAST),
    settings=(
        count("world_size", rb"using world size: (?P<value>\d+)"),
        count("world_size", rb"\bworld_size \.{3,} (?P<value>\d+)"),
        count("global_batch", rb"\bglobal_batch_size \.{3,} (?P<value>\d+)"),
        count("global_batch", rb"\btrain_batch_size \.{3,} (?P<value>\d+)"),
        fixed("precision", rb"\bbf16 \.{3,} True", "bf16"),
        fixed("precision", rb"\bfp16 \.{3,} True", "fp16"),
    ),
    start=re.compile(rb"using world size: \d+"),
)
