"""Whether there is room on the disk for what a run writes."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from trainmark.doctor.examined import Examined
from trainmark.doctor.finding import About, Check, Finding, bad, ok, warn
from trainmark.doctor.limits import SCRATCH_BAD_BYTES, SCRATCH_WARN_BYTES
from trainmark.doctor.words import size


def find(examined: Examined) -> Iterator[Finding]:
    for node, facts in examined.facts():
        path, free = facts.scratch.path, facts.scratch.free
        quoted = shlex.quote(path)
        if free is None:
            yield bad(node, "none", f"there is no folder {path}", f"on {node}: `mkdir -p {quoted}`")
            continue
        value = f"{size(free)} free"
        fix = f"on {node}: `du -xh {quoted} | sort -h | tail` shows what can go"
        if free < SCRATCH_BAD_BYTES:
            yield bad(node, value, f"{path} is full but for {value}", fix)
        elif free < SCRATCH_WARN_BYTES:
            yield warn(node, value, f"{path} has only {value}", fix)
        else:
            yield ok(node, value)


CHECK = Check("scratch", About.HOST, find)
