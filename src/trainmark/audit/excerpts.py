"""What a report shows of its runs: log excerpts, commands, and results as a script printed them.

logs/1n8g/rn50_b128_fp32_4.log {4: 2788.99}
{'rn50': {'1n8g': {'average_speed': 2774.29, 'median_speed': 2773.82, 'speedup': 7.5}}}
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from trainmark.audit.number import Number
from trainmark.audit.report import CodeBlock, Report
from trainmark.audit.terms import SHORT_TOPOLOGY

LONGEST_LOG_LINE = 20_000
TIME_STAMP = re.compile(r"(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d{1,6})?)")
STEP = re.compile(r"\b(?:iteration|iter|step|batch)[:=]? {0,2}(\d{1,9})\b", re.I)
RATE = re.compile(
    r"(?:total_ips|imgs_per_sec|samples/s(?:ec)?|images/sec|ips|throughput) ?[:=] ?(\d{1,12}(?:\.\d{1,12})?)",
    re.I,
)
TOP1 = re.compile(r"\btop_?-?1[:=]? {0,2}(\d{1,3}\.\d{1,9})", re.I)
SETTINGS = {
    "world_size": re.compile(r"\bworld_?size ?[:=] ?(\d{1,6})\b"),
    "nodes": re.compile(r"--(?:nnodes|num_nodes|nodes)[ =](\d{1,5})\b"),
    "devices_per_node": re.compile(r"--(?:nproc_per_node|gpu_num_per_node)[ =](\d{1,4})\b"),
    "batch": re.compile(r"(?: -b |--batch[-_]size(?:[-_]per[-_]device)?[ =]|\bbatch_size : )(\d{1,7})\b"),
    "momentum": re.compile(r"(?:--mom(?:entum)?[ =]|\bmomentum ?[:=] ?)(\d?\.\d{1,9})\b"),
    "weight_decay": re.compile(r"(?:--wd[ =]|weight_decay ?[:=] ?)([\d.]{1,20}(?:e-?\d{1,3})?)"),
    "steps": re.compile(r"(?:--prof[ =]|\bprof : )(\d{1,9})\b"),
}


@dataclass(frozen=True)
class ShownSetting:
    """A value that a command or a log states, and where."""

    value: str
    line: int


@dataclass(frozen=True)
class LoggedStep:
    """One logged step."""

    line: int
    number: int
    stamp: str | None
    rate: float | None
    top1: float | None


@dataclass(frozen=True)
class ShownLog:
    """A block that shows a command, its log, or both; `topology` is that of the path it writes to."""

    block: CodeBlock
    topology: tuple[int, int] | None
    settings: dict[str, tuple[ShownSetting, ...]]
    steps: tuple[LoggedStep, ...]
    stamps: tuple[str, ...]

    def first(self, name: str) -> ShownSetting | None:
        settings = self.settings.get(name)
        return settings[0] if settings else None

    @property
    def devices(self) -> int | None:
        return self.topology[0] * self.topology[1] if self.topology else None


def shown_logs(report: Report) -> list[ShownLog]:
    return report.cached("shown logs", _all_shown_logs)


def _all_shown_logs(report: Report) -> Iterator[ShownLog]:
    for block in report.code:
        log = _shown_log(block)
        if log.settings or log.steps:
            yield log


def stamp_seconds(stamp: str) -> float:
    """A time stamp as seconds, to take differences of."""
    return datetime.fromisoformat(_iso(stamp)).timestamp()


def _iso(stamp: str) -> str:
    whole, _, fraction = stamp.replace(",", ".").partition(".")
    return f"{whole}.{fraction:0<6}" if fraction else whole


def _shown_log(block: CodeBlock) -> ShownLog:
    settings: dict[str, list[ShownSetting]] = {}
    steps: list[LoggedStep] = []
    stamps: list[str] = []
    topologies: set[tuple[int, int]] = set()
    for number, line in block.numbered():
        if len(line) > LONGEST_LOG_LINE:
            continue
        for name, pattern in SETTINGS.items():
            if match := pattern.search(line):
                settings.setdefault(name, []).append(ShownSetting(match[1], number))
        topologies |= {(int(nodes), int(devices)) for nodes, devices in SHORT_TOPOLOGY.findall(line)}
        stamp = TIME_STAMP.search(line)
        if stamp:
            stamps.append(stamp[1])
        step, rate, top1 = STEP.search(line), RATE.search(line), TOP1.search(line)
        if step and (rate or top1):
            steps.append(
                LoggedStep(
                    number,
                    int(step[1]),
                    _valid(stamp[1]) if stamp else None,
                    float(rate[1]) if rate else None,
                    float(top1[1]) if top1 else None,
                )
            )
    return ShownLog(
        block,
        topologies.pop() if len(topologies) == 1 else None,
        {name: tuple(values) for name, values in settings.items()},
        tuple(steps),
        tuple(stamps),
    )


def _valid(stamp: str) -> str | None:
    try:
        stamp_seconds(stamp)
    except (ValueError, OverflowError, OSError):
        return None
    return stamp


LONGEST_PRINTED_LINE = 4000
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
    return report.cached("printed results", _all_printed_results)


def _all_printed_results(report: Report) -> Iterator[PrintedResult]:
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
        if len(line) > LONGEST_PRINTED_LINE or "{" not in line or not (match := FILE_LINE.match(line)):
            continue
        runs = {int(key): _number(value) for key, value in RUN.findall(match[4])}
        if runs:
            yield RunLine(number, match[1], match[2], match[3], runs)


def _cases(block: CodeBlock) -> Iterator[PrintedCase]:
    model, case = "", None
    for number, line in block.numbered():
        if len(line) > LONGEST_PRINTED_LINE or FILE_LINE.match(line):
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
