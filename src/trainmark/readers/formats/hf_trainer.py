"""Hugging Face Trainer: `{'loss': 2.5976, 'learning_rate': 2.2e-06, 'epoch': 0.14}`; numbers, or strings.

A line names neither step nor time: both are taken from the progress bar drawn before it, where there is one.
"""

import re
from collections.abc import Iterable, Iterator

from trainmark.events import Scope
from trainmark.readers.format import Clock, Format, Kind, Rate, Setting

NUMBER = rb"'?(?P<%b>[\d.e+-]+|nan|inf)'?"
LINE = re.compile(
    rb"(?:^|\s)\d+%\|[^|\n]*\| (?P<step>\d+)/(?P<total>\d{1,12}) \[(?P<elapsed>(?:\d+:)?\d+:\d\d)<"
    rb"|\{'loss': ",
    re.MULTILINE,
)


def with_progress(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Each line of figures after the state of the longest bar so far, which is the one of training."""
    total, state = 0, b""

    def rewritten(found: re.Match[bytes]) -> bytes:
        nonlocal total, state
        if found["step"] is None:
            return state + found[0]
        if int(found["total"]) >= total:
            total = int(found["total"])
            elapsed = b"0:" * (2 - found["elapsed"].count(b":")) + found["elapsed"]
            state = b"hf: step=%b elapsed=%b " % (found["step"], elapsed)
        return found[0]

    for block in blocks:
        yield LINE.sub(rewritten, block)


FORMAT = Format(
    name="hf-trainer",
    title="Hugging Face Trainer",
    framework="pytorch",
    sign=re.compile(
        rb"\{'loss': [^\n}]{0,300}'learning_rate': "
        rb"|\{'train_runtime': [^\n}]{0,60}'train_samples_per_second': "
    ),
    step=re.compile(
        rb"(?:hf: step=(?P<step>\d+) elapsed=(?P<wall>[\d:]+) )?\{'loss': "
        + NUMBER % b"loss"
        + rb"(?=[^\n}]{0,300}?"
        rb"'learning_rate': " + NUMBER % b"lr" + rb")(?=[^\n}]{0,300}?'epoch': " + NUMBER % b"epoch" + rb")"
    ),
    rate=Rate("samples", Scope.GLOBAL, Kind.CUMULATIVE),
    clock=Clock.TIME_OF_DAY,
    settings=(
        Setting(
            "batch_per_device",
            re.compile(rb"Instantaneous batch size per device = (?P<value>[\d,]+)"),
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
    evaluation=re.compile(rb"\{'eval_loss': [^\n}]{0,300}?'eval_accuracy': " + NUMBER % b"top1"),
    summary=re.compile(
        rb"\{'train_runtime': " + NUMBER % b"seconds" + rb", 'train_samples_per_second': " + NUMBER % b"rate"
    ),
    rewrite=with_progress,
)
