"""Secrets that a program gave as facts, masked in the events that are kept of it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

from trainmark.events.stream import StreamError, line_blocks
from trainmark.secret import scrub
from trainmark.store.trial import EVENTS

FACTS = b'"facts"'


def scrub_events(trial: Path) -> None:
    """Rewrite the event files of a trial whose facts hold secrets; those that cannot be read are left."""
    for path in sorted((trial / EVENTS).glob("rank*.jsonl")):
        with contextlib.suppress(OSError, StreamError):
            if any(_scrubbed(line) != line for line in _lines_with_facts(path)):
                _rewrite(path)


def _lines_with_facts(path: Path) -> Iterator[bytes]:
    """Steps have none, so that most blocks are passed over after one search."""
    for block in line_blocks(path):
        if FACTS in block:
            yield from (line for line in block.splitlines(keepends=True) if FACTS in line)


def _rewrite(path: Path) -> None:
    part = path.with_name(f".{path.name}.part")
    part.unlink(missing_ok=True)
    with part.open("xb") as out:
        for block in line_blocks(path):
            out.writelines(map(_scrubbed, block.splitlines(keepends=True)))
    part.replace(path)


def _scrubbed(line: bytes) -> bytes:
    if FACTS not in line:
        return line
    try:
        event = json.loads(line)
        if scrub(event.get("facts")) == event.get("facts"):
            return line
    except (ValueError, RecursionError, AttributeError):
        return line
    event["facts"] = scrub(event["facts"])
    return json.dumps(event, separators=(",", ":")).encode() + b"\n" * line.endswith(b"\n")
