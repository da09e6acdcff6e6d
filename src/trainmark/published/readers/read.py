"""From paths to runs: every log found, recognised and read, and a sentence for each that was not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from trainmark.errors import UserError
from trainmark.published.readers.engine import read_runs
from trainmark.published.readers.format import Format
from trainmark.published.readers.input.archives import LogStream
from trainmark.published.readers.input.lines import Cleaning, clean_blocks
from trainmark.published.readers.input.refusal import Refusal, naming
from trainmark.published.readers.input.sources import sources
from trainmark.published.readers.logged import LoggedRun
from trainmark.published.readers.recognise import Recognition, recognise

Taken = TypeVar("Taken")


@dataclass(frozen=True)
class Log:
    """One log that was read; `recognition` is None where the format was named."""

    name: str
    format: Format
    recognition: Recognition | None
    runs: tuple[LoggedRun, ...]


@dataclass(frozen=True)
class OpenLog:
    """A log whose runs are still to be read: a file may hold more of them than fit into memory at once.

    `cleaning` counts damaged lines up to where the runs have been taken.
    """

    name: str
    format: Format
    recognition: Recognition | None
    runs: Iterator[LoggedRun]
    cleaning: Cleaning


def read_logs(paths: Sequence[str], format: Format | None = None) -> Iterator[Log | Refusal]:
    """One at a time, in order; what is wrong with one log does not keep the others from being read."""
    return each_log(paths, whole, format)


def each_log(
    paths: Sequence[str], take: Callable[[OpenLog], Taken], format: Format | None = None
) -> Iterator[Taken | Refusal]:
    """What `take` makes of each log, or why one was not read."""
    refused = ""
    for source in sources(paths):
        answer: Taken | Refusal
        try:
            with naming(source.name):
                answer = source if isinstance(source, Refusal) else take(open_log(source, format))
        except UserError as error:
            answer = Refusal(source.name, str(error))
        # What breaks off a member may keep its archive from going on as well, for the same reason.
        if isinstance(answer, Refusal):
            if answer.sentence == refused:
                continue
            refused = answer.sentence
        yield answer


def read_log(source: LogStream, format: Format | None = None) -> Log:
    """The runs of one log; the format is recognised where none is named."""
    return whole(open_log(source, format))


def open_log(source: LogStream, format: Format | None = None) -> OpenLog:
    """One log with its format, recognised where none is named, before any of its runs is read."""
    cleaning = Cleaning()
    blocks = clean_blocks(source.chunks, cleaning)
    recognition = None
    if format is None:
        recognition, blocks = recognise(blocks, source.name)
        format = recognition.format
    runs = read_runs(format, filter(None, blocks), source.name)
    return OpenLog(source.name, format, recognition, runs, cleaning)


def whole(log: OpenLog) -> Log:
    """The log with all its runs in memory."""
    runs = tuple(log.runs)
    runs[-1].damaged_lines += log.cleaning.damaged_lines
    return Log(log.name, log.format, log.recognition, runs)
