"""Hugging Face Trainer's `trainer_state.json`: the history of losses, and the rate that it concludes.

It has no times of its own. `train_samples_per_second` counts all devices.
"""

import re
from collections.abc import Iterable, Iterator

from trainmark.events import Scope
from trainmark.published.readers.format import Format, Kind, Rate
from trainmark.published.readers.formats._common import LOSS, NUMBER

ENTRY = re.compile(rb"\{[^{}]*\}")


def entries(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Each entry of the history on a line of its own, whatever the indentation."""
    rest = b""
    for block in blocks:
        text = rest + block
        cut = text.rfind(b"}") + 1
        rest = text[cut:] if len(text) - cut < 1 << 20 else b""
        yield b"".join(b"state: " + b" ".join(entry.split()) + b"\n" for entry in ENTRY.findall(text[:cut]))


FORMAT = Format(
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
    rewrite=entries,
)
