"""From paths to runs: every log found, recognised and read, and a sentence for each that was not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from trainmark.errors import UserError
from trainmark.readers.archives import Refusal, Source
from trainmark.readers.engine import read_runs
from trainmark.readers.format import Format
from trainmark.readers.lines import Cleaning, clean_blocks
from trainmark.readers.logged import LoggedRun
from trainmark.readers.recognise import Recognition, recognise
from trainmark.readers.sources import sources


@dataclass(frozen=True)
class Log:
    """One log that was read; `recognition` is None where the format was named."""

    name: str
    format: Format
    recognition: Recognition | None
    runs: tuple[LoggedRun, ...]


def read_logs(paths: Sequence[str], format: Format | None = None) -> Iterator[Log | Refusal]:
    """One at a time, in order; what is wrong with one log does not keep the others from being read."""
    for source in sources(paths):
        if isinstance(source, Refusal):
            yield source
            continue
        try:
            yield read_log(source, format)
        except UserError as error:
            yield Refusal(source.name, str(error))


def read_log(source: Source, format: Format | None = None) -> Log:
    """The runs of one log; the format is recognised where none is named."""
    cleaning = Cleaning()
    blocks = clean_blocks(source.chunks, cleaning)
    recognition = None
    if format is None:
        recognition, blocks = recognise(blocks, source.name)
        format = recognition.format
    runs = tuple(read_runs(format, blocks, source.name))
    runs[-1].damaged_lines += cleaning.damaged_lines
    return Log(source.name, format, recognition, runs)
