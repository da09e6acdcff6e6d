"""Read logs: from paths to runs, one pass over each file in constant memory but for the columns.

Every log that is found is recognized and read, with a sentence for each that is not.
"""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from trainmark.base.errors import UserError
from trainmark.logs.format import COUNTS, Format
from trainmark.logs.lines import Cleaning, by_rank, clean_blocks
from trainmark.logs.logged_run import LoggedRun
from trainmark.logs.recognition import Recognition, recognize
from trainmark.logs.shapes import dense
from trainmark.logs.sources import LogStream, sources
from trainmark.logs.streams import SourceRefusal, naming

# Settings stand at the head of a run; seeking them through gigabytes of progress would find nothing.
SETTINGS_BYTES = 16 << 20


def read_runs(format: Format, blocks: Iterable[bytes], source: str) -> Iterator[LoggedRun]:
    """The runs in one log, in order; `blocks` end at line ends and are clean of terminal codes."""
    run = LoggedRun(source, format)
    seen = 0
    blocks = map(format.prepare, blocks)
    for block in blocks if format.rewrite is None else format.rewrite(blocks):
        alike = dense(format, block)
        if alike is not None and not (format.start and format.start.search(alike.rest)):
            if seen < SETTINGS_BYTES:
                _settings(run, alike.rest, 0 if len(run.steps) else len(alike.rest))
            run.steps.append(alike.columns, alike.lines)
            _conclusions(run, alike.rest)
            seen += len(block)
            continue
        for begins, part in _parts(format.start, block):
            if begins and len(run.steps):
                yield run
                run, seen = LoggedRun(source, format, run.number + 1), 0
            add_block(run, part, settings=seen < SETTINGS_BYTES)
            seen += len(part)
    # What begins after the last run and never makes a step is no run of its own.
    if len(run.steps) or run.number == 1:
        yield run


def add_block(run: LoggedRun, block: bytes, settings: bool = True) -> None:
    """Adds what a stretch of the log says to the run, rank by rank where the lines are tagged."""
    begun = len(run.steps) > 0
    for rank, text in by_rank(block):
        if settings:
            _settings(run, text, 0 if begun else _first_progress(run.format, text))
        run.steps.add(run.format.step, run.format.step.findall(text), run.format.clock, rank)
        _conclusions(run, text)


def _first_progress(format: Format, text: bytes) -> int:
    """Where the first progress line ends, or the text."""
    first = format.step.search(text)
    end = text.find(b"\n", first.end()) if first else -1
    return end if end >= 0 else len(text)


def _settings(run: LoggedRun, text: bytes, first_progress: int) -> None:
    """Takes what the text says of the run; counts only up to where its first progress line ends."""
    for setting in run.format.settings:
        latest = len(text) if setting.late or setting.name not in COUNTS else first_progress
        if setting.name not in run.settings and (match := setting.pattern.search(text)):
            if match.start() >= latest:
                continue
            if setting.means is not None:
                run.settings[setting.name] = setting.means
                continue
            with contextlib.suppress(ValueError):  # what does not convert is not what was meant
                run.settings[setting.name] = setting.convert(match["value"].decode("utf-8", "replace"))
                run.setting_of[setting.name] = setting
        if run.setting_of.get(setting.name) is setting and setting.convert is int:
            values = {int(value) for value in _values(setting.pattern, text)}
            if values - {run.settings[setting.name]}:
                run.conflicting.add(setting.name)


def _values(pattern: re.Pattern[bytes], text: bytes) -> set[bytes]:
    return {match["value"] for match in pattern.finditer(text) if match["value"].isdigit()}


def _conclusions(run: LoggedRun, text: bytes) -> None:
    """What was evaluated, and what the program says of itself at the end."""
    format = run.format
    if format.evaluation is not None:
        run.evaluations += [_named_numbers(match) for match in format.evaluation.finditer(text)]
    if format.summary is not None:
        for match in format.summary.finditer(text):
            run.summary.update(_named_numbers(match))


def _parts(start: re.Pattern[bytes] | None, block: bytes) -> Iterator[tuple[bool, bytes]]:
    """The block cut where a run begins; True marks the parts that begin one."""
    cuts = [match.start() for match in start.finditer(block)] if start is not None else []
    edges = [0, *cuts, len(block)]
    for index, (begin, end) in enumerate(itertools.pairwise(edges)):
        if end > begin:
            yield index > 0, block[begin:end]


def _named_numbers(match: re.Match[bytes]) -> dict[str, float]:
    named = {name: text for name, text in match.groupdict().items() if text}
    numbers = {}
    for name, text in named.items():
        try:
            numbers[name] = float(text)
        except ValueError:
            continue
    return numbers


Answer = TypeVar("Answer")


@dataclass(frozen=True)
class ParsedLog:
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


def read_logs(paths: Sequence[str], format: Format | None = None) -> Iterator[ParsedLog | SourceRefusal]:
    """One at a time, in order; what is wrong with one log does not keep the others from being read."""
    return each_log(paths, read_whole, format)


def each_log(
    paths: Sequence[str], take: Callable[[OpenLog], Answer], format: Format | None = None
) -> Iterator[Answer | SourceRefusal]:
    """What `take` makes of each log, or why one was not read."""
    refused = ""
    for source in sources(paths):
        answer: Answer | SourceRefusal
        try:
            with naming(source.name):
                answer = source if isinstance(source, SourceRefusal) else take(open_log(source, format))
        except UserError as error:
            answer = SourceRefusal(source.name, str(error))
        # What breaks off a member may keep its archive from going on as well, for the same reason.
        if isinstance(answer, SourceRefusal):
            if answer.sentence == refused:
                continue
            refused = answer.sentence
        yield answer


def read_log(source: LogStream, format: Format | None = None) -> ParsedLog:
    """The runs of one log; the format is recognised where none is named."""
    return read_whole(open_log(source, format))


def open_log(source: LogStream, format: Format | None = None) -> OpenLog:
    """One log with its format, recognised where none is named, before any of its runs is read."""
    cleaning = Cleaning()
    blocks = clean_blocks(source.chunks, cleaning)
    recognition = None
    if format is None:
        recognition, blocks = recognize(blocks, source.name)
        format = recognition.format
    runs = read_runs(format, filter(None, blocks), source.name)
    return OpenLog(source.name, format, recognition, runs, cleaning)


def read_whole(log: OpenLog) -> ParsedLog:
    """The log with all its runs in memory."""
    runs = tuple(log.runs)
    runs[-1].damaged_lines += log.cleaning.damaged_lines
    return ParsedLog(log.name, log.format, log.recognition, runs)
