"""Results that a report shows as a script printed them: the runs by file, and the dictionary over them.

logs/1n8g/rn50_b128_fp32_4.log {4: 2788.99}
{'rn50': {'1n8g': {'average_speed': 2774.29, 'median_speed': 2773.82, 'speedup': 7.5}}}
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from trainmark.published.audit.report.number import Number
from trainmark.published.audit.report.report import CodeBlock, Report

LONGEST_LINE = 4000
FILE_LINE = re.compile(r"\s*(\S{0,400}?)(\d{1,4}n\d{1,3}g)/([^\s/]{1,200})\s+\{([^{}]{1,2000})\}\s*$")
RUN = re.compile(r"['\"]?(\d{1,6})['\"]?: ?(\d{1,12}(?:\.\d{1,12})?)")
TOPOLOGY = re.compile(r"\d{1,4}n\d{1,3}g")
ENTRY = re.compile(
    r"['\"](average_speed|median_speed|speedup|batch_size_per_device)['\"]: ?(\d{1,12})(?:\.(\d{1,12}))?"
    r"|['\"]([\w.-]{1,60})['\"]: ?\{"
)
PRECISION_IN_NAME = re.compile(r"_(fp32|fp16|amp|tf32|bf16)(?=[_.])")


@dataclass(frozen=True)
class RunLine:
    """One line of runs by file: all runs read so far, the last being that of this file.

    `folder` is the path above the topology: a run of another day or batch lies in another.
    """

    line: int
    folder: str
    topology: str
    file: str
    runs: dict[int, Number]


@dataclass
class PrintedCase:
    """The figures of one topology in the dictionary, and the runs listed for it."""

    model: str
    topology: str
    line: int
    figures: dict[str, tuple[Number, int]] = field(default_factory=dict)
    runs: dict[int, Number] = field(default_factory=dict)

    def figure(self, name: str) -> Number | None:
        entry = self.figures.get(name)
        return entry[0] if entry else None


@dataclass(frozen=True)
class PrintedResult:
    """All that one block of output prints."""

    lines: tuple[RunLine, ...]
    cases: tuple[PrintedCase, ...]


def printed_results(report: Report) -> list[PrintedResult]:
    return report.cached("printed results", _all)


def _all(report: Report) -> Iterator[PrintedResult]:
    for block in report.code:
        lines = tuple(_run_lines(block))
        cases = tuple(_cases(block))
        listed: dict[str, dict[str, dict[int, Number]]] = {}
        for line in lines:
            listed.setdefault(line.topology, {}).setdefault(line.folder, {}).update(line.runs)
        for case in cases:
            folders = list(listed.get(case.topology, {}).values())
            case.runs = folders[0] if len(folders) == 1 else {}
        if lines or cases:
            yield PrintedResult(lines, cases)


def _run_lines(block: CodeBlock) -> Iterator[RunLine]:
    for number, line in block.numbered():
        if len(line) > LONGEST_LINE or "{" not in line or not (match := FILE_LINE.match(line)):
            continue
        runs = {int(key): _number(value) for key, value in RUN.findall(match[4])}
        if runs:
            yield RunLine(number, match[1], match[2], match[3], runs)


def _cases(block: CodeBlock) -> Iterator[PrintedCase]:
    model, case = "", None
    for number, line in block.numbered():
        if len(line) > LONGEST_LINE or FILE_LINE.match(line):
            continue
        for name, whole, decimals, key in ENTRY.findall(line):
            if key and TOPOLOGY.fullmatch(key):
                if case:
                    yield case
                case = PrintedCase(model, key, number)
            elif key:
                model = key
            elif case:
                case.figures[name] = (_number(f"{whole}.{decimals}" if decimals else whole), number)
    if case:
        yield case


def _number(text: str) -> Number:
    """Two decimals at least: Python prints 7.50 as 7.5."""
    return Number(float(text), max(2, len(text.partition(".")[2])))
