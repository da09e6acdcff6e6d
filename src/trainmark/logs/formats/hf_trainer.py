"""Hugging Face Trainer's progress bars and its `trainer_state.json` as lines of ours."""

import re
from collections.abc import Iterable, Iterator

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
