"""nanoGPT, modded-nanogpt and llm.c: one trainer, written again.

nanoGPT: `iter 10: loss 4.1039, time 1434.03ms, mfu 0.01%`. The time is of that iteration alone. One that
follows a line of evaluation holds it, and is left out.
modded-nanogpt: `step:14/5100 train_loss:6.6428 train_time:498ms step_avg:124.60ms`. `train_time` is the
clock of training alone, evaluations left out; it begins again after ten steps.
llm.c: `step    2/32000 | loss 10.539 (+nanz)| norm … | lr … | 2747.19 ms | 47.4% bf16 MFU | 381690 tok/s`.
The rate counts all processes; it is a moving average that forgets within some twenty steps.
"""

import re

from trainmark.events import Scope
from trainmark.logs.format import Format, Kind, Rate, TimeFormat
from trainmark.logs.formats._common import LOSS, NUMBER, count, without_groups

EVALUATED = re.compile(
    rb"(step (\d+): train loss [^\n]*\n(?:saving checkpoint[^\n]*\n)?)iter \2: (loss [^\n,]+), time [^\n]*"
)


def without_evaluations(block: bytes) -> bytes:
    return EVALUATED.sub(rb"\1iter \2 with its evaluation: \3", without_groups(block))


NANOGPT = Format(
    name="nanogpt",
    title="nanoGPT",
    framework="pytorch",
    sign=re.compile(rb"\biter \d+: loss [\d.]+, time [\d.]+ms"),
    step=re.compile(rb"\biter (?P<step>\d+): loss (?P<loss>%b), time (?P<ms>%b)ms(?=[,\s])" % (LOSS, NUMBER)),
    rate=Rate("tokens", Scope.GLOBAL, Kind.INSTANT),
    settings=(count("samples_per_step", rb"tokens per iteration will be: (?P<value>\d+)\s"),),
    prepare=without_evaluations,
)


MODDED_NANOGPT = Format(
    name="modded-nanogpt",
    title="modded-nanogpt",
    framework="pytorch",
    sign=re.compile(rb"\bstep:\d+/\d+ (?:(?:train|val)_loss:\S+ )?train_time:\d+ms step_avg:"),
    step=re.compile(
        rb"\bstep:(?P<step>\d+)/\d+ (?:train_loss:(?P<loss>%b) |val_loss:\S+ )?" % LOSS
        + rb"train_time:(?P<wall>\d+)ms step_avg:"
    ),
    rate=Rate("tokens", Scope.GLOBAL, Kind.INSTANT),
    clock=TimeFormat.UNIX_MS,
)


LLM_C_LINE = rb"\bstep +(?P<step>\d+)/\d+ \| (?:train )?loss (?P<loss>%b) " % LOSS

LLM_C = Format(
    name="llm.c",
    title="llm.c",
    framework=None,
    sign=re.compile(
        rb"\bstep +\d+/\d+ \| (?:train )?loss \S+ [^\n]{0,160}?\| +[\d.]+ ms \|[^\n]{0,60}? tok/s"
    ),
    step=re.compile(
        LLM_C_LINE
        + rb"[^\n]{0,160}?\| +(?P<ms>%b) ms \|[^\n]{0,60}?\| +(?P<rate>%b) tok/s" % (NUMBER, NUMBER)
    ),
    rate=Rate("tokens", Scope.GLOBAL, Kind.INSTANT),
    settings=(
        count("world_size", rb"\bnum_processes=(?P<value>\d+)"),
        count("samples_per_step", rb"\btotal_batch_size=(?P<value>\d+)"),
    ),
    start=re.compile(rb"batch_size B=\d+ \* seq_len T=\d+"),
)
