"""Our own events, as `trainmark.probe` writes them: one file a rank."""

from __future__ import annotations

from collections.abc import Iterator

from trainmark.events import Event, stream
from trainmark.readers.trials.output import Output, ReaderError


def read(output: Output) -> Iterator[Event]:
    files = sorted((output.folder / "events").glob("rank*.jsonl"))
    if not files:
        raise ReaderError(
            "the program emitted no events; call trainmark.probe in it, or name another reader."
        )
    for file in files:
        yield from stream.read(file)
