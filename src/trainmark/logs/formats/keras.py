"""Keras' bars as lines of ours: each with its epoch, with the step time and the figures that it shows."""

import re
from collections.abc import Iterable, Iterator

LINE = re.compile(
    rb"\bEpoch (?P<epoch>\d+)/\d+"
    rb"|\b(?P<step>\d+)/(?:\d+|Unknown) (?:\[[=>.]+\] -|[^\x00-\x7f]+|-) "
    rb"(?=[^\n]{0,300}\bloss: )(?P<figures>[^\n]*)"
)
PACE = re.compile(rb"\b(?P<number>\d{1,12})(?P<unit>us|ms|s)/(?P<per>step|sample)\b")
# With verbose=2 the whole epoch is told beside it, in more digits.
EPOCH_TIME = re.compile(rb"\b(?P<number>\d{2,12})(?P<unit>ms|s)/epoch\b")
LOSS = re.compile(rb"(?<!\w)loss: ([\d.e+-]+|nan|inf)")
ACCURACY = re.compile(
    rb"(?<!val_)\b(?:accuracy|acc|categorical_accuracy|sparse_categorical_accuracy): ([\d.]+)"
)
MS = {b"us": 0.001, b"ms": 1.0, b"s": 1000.0}


def last_states(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Every bar as one line of ours with its epoch; of a bar that was drawn again, the last state."""
    epoch = pending = shown = b""

    def rewritten(match: re.Match[bytes]) -> bytes:
        nonlocal epoch, pending, shown
        if match["epoch"] is not None:
            done, pending, shown, epoch = pending, b"", b"", match["epoch"]
            return done + match[0]
        bar = b"keras: epoch=%b step=%b " % (epoch, match["step"])
        done = b"" if bar == shown else pending
        pending, shown = bar + _figures(match["figures"], int(match["step"])), bar
        return done

    for block in blocks:
        yield LINE.sub(rewritten, block)
    yield pending


def _figures(text: bytes, steps: int) -> bytes:
    ms = rate = b""
    if whole := EPOCH_TIME.search(text):
        ms = b"%.3f" % (int(whole["number"]) * MS[whole["unit"]] / max(steps, 1))
    elif pace := PACE.search(text):
        took = int(pace["number"]) * MS[pace["unit"]]
        if pace["per"] == b"step":
            ms = b"%.3f" % took
        elif took:
            rate = b"%.3f" % (1000 / took)
    loss, accuracy = LOSS.search(text), ACCURACY.search(text)
    return b"ms=%b rate=%b loss=%b top1=%b %b\n" % (
        ms,
        rate,
        loss[1] if loss else b"",
        accuracy[1] if accuracy else b"",
        text,
    )
