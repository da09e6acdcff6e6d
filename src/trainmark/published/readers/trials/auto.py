"""Whatever tells the steps of an untouched program: the probe, the hooks, a log format, or a pattern."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from trainmark.events import Event
from trainmark.published.readers.recognise import UnrecognisedError, recognise
from trainmark.published.readers.trials import foreign, observed, pattern, probe
from trainmark.published.readers.trials.output import Output, ReaderError
from trainmark.regular_file import open_regular

BLOCK_BYTES = 1 << 20
NOTHING_SEEN = (
    "no step was seen: the program calls no probe, no PyTorch optimizer, Keras fit or JAX gradient ran, and "
    "its log is in no known format; say --pattern with a regular expression that matches the line of a step."
)


def read(output: Output) -> Iterator[Event]:
    if output.pattern is not None:
        return pattern.read(output)
    if any((output.folder / "events").glob("rank*.jsonl")):
        return probe.read(output)
    if observed.streams(output.folder):
        return observed.read(output)
    return _logged(output)


def _logged(output: Output) -> Iterator[Event]:
    try:
        recognition, _ = recognise(_blocks(pattern.log_of(output, 0)), "rank0.log")
        return foreign.read(recognition.format, output)
    except (UnrecognisedError, OSError) as error:
        raise ReaderError(NOTHING_SEEN) from error


def _blocks(path: Path) -> Iterator[bytes]:
    with open_regular(path) as file:
        while block := file.read(BLOCK_BYTES):
            yield block
