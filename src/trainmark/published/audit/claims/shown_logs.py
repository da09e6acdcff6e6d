"""Log excerpts and commands that a report shows: what they say of topology, recipe and steps."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from trainmark.published.audit.claims.topology import SHORT
from trainmark.published.audit.report.report import CodeBlock, Report

LONGEST_LINE = 20_000
STAMP = re.compile(r"(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d{1,6})?)")
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
class Step:
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
    steps: tuple[Step, ...]
    stamps: tuple[str, ...]

    def first(self, name: str) -> ShownSetting | None:
        settings = self.settings.get(name)
        return settings[0] if settings else None

    @property
    def devices(self) -> int | None:
        return self.topology[0] * self.topology[1] if self.topology else None


def shown_logs(report: Report) -> list[ShownLog]:
    return report.cached("shown logs", _all)


def _all(report: Report) -> Iterator[ShownLog]:
    for block in report.code:
        log = _read(block)
        if log.settings or log.steps:
            yield log


def seconds(stamp: str) -> float:
    """A time stamp as seconds, to take differences of."""
    return datetime.fromisoformat(_iso(stamp)).timestamp()


def _iso(stamp: str) -> str:
    whole, _, fraction = stamp.replace(",", ".").partition(".")
    return f"{whole}.{fraction:0<6}" if fraction else whole


def _read(block: CodeBlock) -> ShownLog:
    settings: dict[str, list[ShownSetting]] = {}
    steps: list[Step] = []
    stamps: list[str] = []
    topologies: set[tuple[int, int]] = set()
    for number, line in block.numbered():
        if len(line) > LONGEST_LINE:
            continue
        for name, pattern in SETTINGS.items():
            if match := pattern.search(line):
                settings.setdefault(name, []).append(ShownSetting(match[1], number))
        topologies |= {(int(nodes), int(devices)) for nodes, devices in SHORT.findall(line)}
        stamp = STAMP.search(line)
        if stamp:
            stamps.append(stamp[1])
        step, rate, top1 = STEP.search(line), RATE.search(line), TOP1.search(line)
        if step and (rate or top1):
            steps.append(
                Step(
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
        seconds(stamp)
    except (ValueError, OverflowError, OSError):
        return None
    return stamp
