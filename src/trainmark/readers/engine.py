"""Applies a format to the text of a log: one pass, block by block, in constant memory but for the columns."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator

from trainmark.readers.format import Format
from trainmark.readers.logged import LoggedRun

# Settings stand at the head of a run; seeking them through gigabytes of progress would find nothing.
SETTINGS_BYTES = 16 << 20


def read_runs(format: Format, blocks: Iterable[bytes], source: str) -> Iterator[LoggedRun]:
    """The runs in one log, in order; `blocks` end at line ends and are clean of terminal codes."""
    run = LoggedRun(source, format)
    seen = 0
    for block in blocks:
        if format.prepare is not None:
            block = format.prepare(block)
        for begins, part in _parts(format.start, block):
            if begins and len(run.steps):
                yield run
                run, seen = LoggedRun(source, format, run.number + 1), 0
            take(run, part, settings=seen < SETTINGS_BYTES)
            seen += len(part)
    yield run


def take(run: LoggedRun, block: bytes, settings: bool = True) -> None:
    format = run.format
    if settings:
        for setting in format.settings:
            if setting.name not in run.settings and (found := setting.pattern.search(block)):
                run.settings[setting.name] = (
                    setting.convert(found["value"].decode("utf-8", "replace"))
                    if setting.means is None
                    else setting.means
                )
    run.steps.add(format.step, format.step.findall(block), format.clock)
    if format.evaluation is not None:
        run.evaluations += [_numbers(found) for found in format.evaluation.finditer(block)]
    if format.summary is not None:
        for found in format.summary.finditer(block):
            run.summary.update(_numbers(found))


def _parts(start: re.Pattern[bytes] | None, block: bytes) -> Iterator[tuple[bool, bytes]]:
    """The block cut where a run begins; True marks the parts that begin one."""
    cuts = [found.start() for found in start.finditer(block)] if start is not None else []
    edges = [0, *cuts, len(block)]
    for index, (begin, end) in enumerate(itertools.pairwise(edges)):
        if end > begin:
            yield index > 0, block[begin:end]


def _numbers(found: re.Match[bytes]) -> dict[str, float]:
    named = {name: text for name, text in found.groupdict().items() if text}
    numbers = {}
    for name, text in named.items():
        try:
            numbers[name] = float(text)
        except ValueError:
            continue
    return numbers
