"""Hugging Face Trainer: `{'loss': 2.5976, 'learning_rate': 2.2e-06, 'epoch': 0.14}`; numbers, or strings.

A line names neither step nor time: both are taken from the progress bar, each state of which is a report
where its clock has gone on. A step of the bar is one of the optimizer, with all that it accumulates.
Axolotl, TRL and others print the same. `trainer_state.json` is the history of losses and the rate that it
concludes, without times of its own; `train_samples_per_second` counts all devices.
"""

import re
from collections.abc import Iterable, Iterator

from trainmark.events import Scope
from trainmark.logs.format import Format, Kind, Rate, Setting, TimeFormat
from trainmark.logs.formats._common import LOSS, NUMBER

QUOTED_NUMBER = rb"'?(?P<%b>[\d.e+-]+|nan|inf)'?"
LINE = re.compile(
    rb"(?:^|\s)\d+%\|[^|\n]*\| (?P<step>\d+)/(?P<total>\d{1,12}) \[(?P<elapsed>(?:\d+:)?\d+:\d\d)<"
    rb"|\{'loss': |\*{5} Running training \*{5}|\bTotal optimization steps = (?P<total_steps>[\d,]{1,15})",
    re.MULTILINE,
)


def with_progress(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """The states of the bar of training, and figures after its last state.

    It is as long as the steps that were announced, or else the longest so far. Every rank may draw it, and
    one after the other write it: a step counts once.
    """
    total = highest = announced = 0
    state, shown = b"hf: step= elapsed= ", b""

    def rewritten(match: re.Match[bytes]) -> bytes:
        nonlocal total, highest, announced, state, shown
        if match["total_steps"] is not None:
            announced = int(match["total_steps"].replace(b",", b"") or 0)
            return match[0]
        if match["step"] is None:
            if match[0].startswith(b"*"):
                total = highest = 0
                return match[0]
            return state + match[0]
        step = int(match["step"])
        if int(match["total"]) < max(total, announced) or step <= highest:
            return match[0]
        total, highest = int(match["total"]), step
        elapsed = b"0:" * (2 - match["elapsed"].count(b":")) + match["elapsed"]
        state = b"hf: step=%d elapsed=%b " % (step, elapsed)
        if elapsed == shown:
            return match[0]
        shown = elapsed
        return b"\n" + state + b"\n" + match[0]

    for block in blocks:
        yield LINE.sub(rewritten, block)


TRAINER = Format(
    name="hf-trainer",
    title="Hugging Face Trainer",
    framework="pytorch",
    sign=re.compile(
        rb"\{'loss': [^\n}]{0,300}'learning_rate': "
        rb"|\{'train_runtime': [^\n}]{0,60}'train_samples_per_second': "
        rb"|\bTotal optimization steps = [\d,]+"
    ),
    step=re.compile(
        rb"hf: step=(?P<step>\d*) elapsed=(?P<wall>[\d:]*) (?:\{'loss': "
        + QUOTED_NUMBER % b"loss"
        + rb"(?:(?=[^\n}]{0,300}?'learning_rate': "
        + QUOTED_NUMBER % b"lr"
        + rb"))?)?"
    ),
    rate=Rate("samples", Scope.GLOBAL, Kind.CUMULATIVE),
    clock=TimeFormat.TIME_OF_DAY,
    settings=(
        Setting(
            "batch_per_device",
            re.compile(rb"Instantaneous batch size per device = (?P<value>[\d,]+)"),
            convert=lambda text: int(text.replace(",", "")),
        ),
        Setting(
            "samples_per_step",
            re.compile(rb"Total train batch size \([^)\n]{0,80}\) = (?P<value>[\d,]+)\s"),
            convert=lambda text: int(text.replace(",", "")),
        ),
        # With gradient accumulation the total says nothing of the devices.
        Setting(
            "global_batch",
            re.compile(
                rb"Total train batch size \([^)\n]{0,80}\) = (?P<value>[\d,]+)\s"
                rb"[^\n]*Gradient Accumulation steps = 1\s"
            ),
            convert=lambda text: int(text.replace(",", "")),
        ),
    ),
    start=re.compile(rb"\*{5} Running training \*{5}"),
    evaluation=re.compile(rb"\{'eval_loss': [^\n}]{0,300}?'eval_accuracy': " + QUOTED_NUMBER % b"top1"),
    summary=re.compile(
        rb"\{'train_runtime': "
        + QUOTED_NUMBER % b"seconds"
        + rb", 'train_samples_per_second': "
        + QUOTED_NUMBER % b"rate"
    ),
    rewrite=with_progress,
)


STATE_ENTRY = re.compile(rb"\{[^{}]*\}")


def state_entries(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Each entry of the history on a line of its own, whatever the indentation."""
    rest = b""
    for block in blocks:
        text = rest + block
        cut = text.rfind(b"}") + 1
        rest = text[cut:] if len(text) - cut < 1 << 20 else b""
        yield b"".join(
            b"state: " + b" ".join(entry.split()) + b"\n" for entry in STATE_ENTRY.findall(text[:cut])
        )


TRAINER_STATE = Format(
    name="hf-trainer-state",
    title="Hugging Face Trainer's trainer_state.json",
    framework="pytorch",
    sign=re.compile(rb'"log_history": \[\s*\{'),
    step=re.compile(
        rb'state: \{(?=[^\n]*?"step": (?P<step>\d+)[ ,}])(?=[^\n]*?"loss": (?P<loss>%b)[ ,}])' % LOSS
        + rb'(?:(?=[^\n]*?"learning_rate": (?P<lr>%b)[ ,}]))?' % NUMBER
    ),
    rate=Rate("samples", Scope.GLOBAL, Kind.CUMULATIVE),
    summary=re.compile(
        rb'state: \{[^\n]*?"train_runtime": (?P<seconds>%b),[^\n]*?' % NUMBER
        + rb'"train_samples_per_second": (?P<rate>%b)[ ,}]' % NUMBER
    ),
    sign_once=True,
    rewrite=state_entries,
)
