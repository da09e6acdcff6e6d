"""Our own events, as `trainmark.probe` writes them: one file a rank."""

from __future__ import annotations

from collections.abc import Iterator

from trainmark.events import Event, stream
from trainmark.logs.trials.output import Output, ReaderError


def read(output: Output) -> Iterator[Event]:
    files = sorted((output.folder / "events").glob("rank*.jsonl"))
    if not files:
        raise ReaderError(stream.NO_EVENTS)
    for file in files:
        yield from stream.read(file)
