"""Read logs: from paths to runs, one pass over each file in constant memory but for the columns.

Every log that is found is recognized and read, with a sentence for each that is not. `read_logs` is what the
command and the Python API call: the runs with their figures.
"""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from trainmark.base.archives import NamedStream
from trainmark.base.errors import UserError
from trainmark.base.streams import SourceRefusal, naming
from trainmark.logs.format import COUNTS, Format
from trainmark.logs.input import Cleaning, by_rank, clean_blocks, sources
from trainmark.logs.logged_run import LoggedRun
from trainmark.logs.recognition import Recognition, recognize
from trainmark.logs.shapes import dense
from trainmark.measure.doubts import Doubt, DoubtCode, doubt
from trainmark.measure.log_figure import (
    LogFacts,
    LoggedFigure,
    columns_digest,
    find_copies,
    logged_figure,
    times_digest,
)
from trainmark.measure.statistics import Floats

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


@dataclass(frozen=True)
class OpenLog:
    """A log whose runs are still to be read: a file may hold more of them than fit into memory at once.

    `recognition` is None where the format was named; `cleaning` counts damaged lines up to where the runs
    have been taken.
    """

    name: str
    format: Format
    recognition: Recognition | None
    runs: Iterator[LoggedRun]
    cleaning: Cleaning


@dataclass(frozen=True)
class ParsedLog:
    """One log with the columns of all its runs."""

    name: str
    format: Format
    recognition: Recognition | None
    runs: tuple[LoggedRun, ...]


Answer = TypeVar("Answer")


def parsed_logs(paths: Sequence[str], format: Format | None = None) -> Iterator[ParsedLog | SourceRefusal]:
    """One at a time, in order; what is wrong with one log does not keep the others from being read."""
    return each_log(paths, _parsed, format)


def parsed_log(source: NamedStream, format: Format | None = None) -> ParsedLog:
    """The runs of one log; the format is recognised where none is named."""
    return _parsed(open_log(source, format))


def _parsed(log: OpenLog) -> ParsedLog:
    return ParsedLog(log.name, log.format, log.recognition, tuple(log.runs))


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


def open_log(source: NamedStream, format: Format | None = None) -> OpenLog:
    """One log with its format, recognised where none is named, before any of its runs is read."""
    cleaning = Cleaning()
    blocks = clean_blocks(source.chunks, cleaning)
    recognition = None
    if format is None:
        recognition, blocks = recognize(blocks, source.name)
        format = recognition.format
    runs = read_runs(format, filter(None, blocks), source.name)
    return OpenLog(source.name, format, recognition, runs, cleaning)


@dataclass(frozen=True)
class GivenFacts:
    """What the user knows and the log does not say."""

    batch: float | None = None
    devices: int | None = None
    samples_per_step: float | None = None

    def complete(self, facts: LogFacts, source: str) -> LogFacts:
        """Return the facts with what they lack; UserError where the log itself says otherwise."""
        self._require("--batch", self.batch, facts.batch_per_device, "the batch of a device", source)
        self._require("--devices", self.devices, facts.world_size, "the number of devices", source)
        of_a_step = facts.samples_of_a_step()
        samples = self.samples_per_step
        self._require("--samples-per-step", samples, of_a_step, f"the {facts.unit} of a step", source)
        whole = replace(
            facts,
            batch_per_device=facts.batch_per_device or self.batch,
            world_size=facts.world_size or self.devices,
            samples_per_step=facts.samples_per_step or samples,
        )
        given = self.batch or self.devices
        if given and facts.global_batch and whole.batch_per_device and whole.world_size:
            batch = whole.batch_per_device * whole.world_size
            if facts.global_batch % batch:  # a step may be of several batches
                raise UserError(
                    f"{source}: the log has {facts.global_batch:g} {facts.unit} a step, no multiple of "
                    f"{whole.batch_per_device:g} × {whole.world_size}: correct --batch or --devices."
                )
        return whole

    @staticmethod
    def _require(option: str, given: float | None, logged: float | None, what: str, source: str) -> None:
        if given is not None and logged is not None and given != logged:
            raise UserError(
                f"{source}: {option} says {given:g}, but the log has {logged:g} as {what}: leave it out."
            )


@dataclass(frozen=True)
class ReadRun:
    """One run and its figure; its lines are no longer in memory, of their times only a digest is."""

    source: str
    format: str
    framework: str | None
    precision: str | None
    top1: float | None
    figure: LoggedFigure
    doubts: tuple[Doubt, ...]
    times: bytes | None


@dataclass(frozen=True)
class ReadLog:
    """One log, what it was told by, and its runs; `recognition` is None where the format was named."""

    name: str
    title: str
    recognition: Recognition | None
    damaged_lines: int
    runs: tuple[ReadRun, ...]


@dataclass(frozen=True)
class LogReading:
    """The logs under some paths, those that were not read, and a sentence for each group of copied runs."""

    logs: tuple[ReadLog, ...]
    refusals: tuple[SourceRefusal, ...]
    copies: tuple[str, ...]

    @property
    def runs(self) -> list[ReadRun]:
        return [run for log in self.logs for run in log.runs]


def read_logs(
    paths: Sequence[str], format: Format | None = None, given: GivenFacts | None = None
) -> LogReading:
    """Read every log under the paths and work out its runs' figures.

    `given` completes what the logs do not say.
    """
    take = partial(_read_log, given=given or GivenFacts(), figures={})
    answers = list(each_log(paths, take, format))
    refusals = tuple(answer for answer in answers if isinstance(answer, SourceRefusal))
    logs, copies = _with_copies([answer for answer in answers if isinstance(answer, ReadLog)])
    return LogReading(tuple(logs), refusals, tuple(copies))


MOST_FIGURES = 256
# Figures of runs by their columns and facts: thousands of copies of a run need one.
Figures = dict[tuple[bytes, LogFacts], LoggedFigure]


def _read_log(log: OpenLog, given: GivenFacts, figures: Figures) -> ReadLog:
    """Work out the figures of a log, run by run."""
    runs = []
    for run in log.runs:
        columns = run.columns()
        facts = given.complete(LogFacts(**run.facts()), run.source)
        figure = _figure(columns, facts, figures)
        framework = run.settings.get("framework") or run.format.framework
        precision = run.settings.get("precision")
        times = times_digest(columns)
        name = run.format.name
        runs.append(
            ReadRun(run.source, name, framework, precision, run.top1, figure, tuple(figure.doubts), times)
        )
    damaged_lines = log.cleaning.damaged_lines
    return ReadLog(log.name, log.format.title, log.recognition, damaged_lines, tuple(runs))


def _figure(columns: Mapping[str, Floats], facts: LogFacts, figures: Figures) -> LoggedFigure:
    key = columns_digest(columns, sorted(columns)), facts
    if key not in figures:
        if len(figures) >= MOST_FIGURES:
            figures.clear()
        figures[key] = logged_figure(columns, facts)
    return figures[key]


def _with_copies(logs: Sequence[ReadLog]) -> tuple[list[ReadLog], list[str]]:
    """The logs with a doubt on each run that is a copy, and a sentence for each group of them."""
    runs = [(log, number, run) for log in logs for number, run in enumerate(log.runs, 1)]
    copied = {}
    for index, group in find_copies([run.times for _, _, run in runs]).items():
        first, number, _ = runs[group.first]
        code = DoubtCode.COPIED_LOGS
        copied[index] = group.first, doubt(code, runs=f"{group.count:,}", number=number, log=first.name)
    sentences = {first: found.message for first, found in copied.values()}
    doubted = (
        replace(run, doubts=(*run.doubts, copied[index][1])) if index in copied else run
        for index, (_, _, run) in enumerate(runs)
    )
    marked = [replace(log, runs=tuple(itertools.islice(doubted, len(log.runs)))) for log in logs]
    return marked, list(sentences.values())


def as_record(run: ReadRun) -> dict[str, Any]:
    """One run for scripts; what a log does not say is None."""
    figure = run.figure
    batch = figure.batch_per_device
    return {
        "source": run.source,
        "format": run.format,
        "framework": run.framework,
        "steps": figure.steps,
        "world_size": figure.world_size,
        "batch_per_device": int(batch) if batch is not None and batch == int(batch) else batch,
        "precision": run.precision,
        "throughput": {
            "value": figure.throughput,
            "low": figure.interval.low if figure.interval else None,
            "high": figure.interval.high if figure.interval else None,
            "unit": f"{figure.unit}/s",
            "scope": "global",
        },
        "steps_per_second": figure.steps_per_second,
        "final_loss": figure.final_loss,
        "top1": run.top1,
        "doubts": [
            {"code": each.code.value, "severity": each.severity.value, "message": each.message}
            for each in run.doubts
        ],
    }
