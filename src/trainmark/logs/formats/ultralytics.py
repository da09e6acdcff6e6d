"""Ultralytics' bars as lines of ours."""

import re
from collections.abc import Iterable, Iterator

from trainmark.logs.format_file import our_format


def last_states(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """Each bar as one line of ours, where its clock has gone on since the one before."""
    bar = our_format("ultralytics").sign
    shown = b""

    def rewritten(match: re.Match[bytes]) -> bytes:
        nonlocal shown
        elapsed = (match["elapsed"] or match["tqdm_elapsed"]).split(b".")[0]
        state = match["epoch"] + b" " + elapsed
        if state == shown or match["step"] == b"0":
            return b""
        shown = state
        clock = b"0:" * (2 - elapsed.count(b":")) + elapsed
        step = match["step"] or match["tqdm_step"]
        return b"ultralytics: epoch=%b step=%b elapsed=%b \n" % (match["epoch"], step, clock)

    for block in blocks:
        yield bar.sub(rewritten, block)
