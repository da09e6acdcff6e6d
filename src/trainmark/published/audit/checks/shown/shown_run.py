"""What a shown log gives away about the run: its data, its network, its accuracy, the names of its files."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainmark.published.audit.claims.printed import PRECISION_IN_NAME, printed_results
from trainmark.published.audit.claims.shown_logs import shown_logs
from trainmark.published.audit.finding import Finding, Severity
from trainmark.published.audit.report.report import CodeBlock, Report

FILES_READ = re.compile(r"read (\d{1,12}) files from (\d{1,9}) directories")
NO_DRIVER = "no userspace device-specific driver found"
FABRIC = re.compile(r"\bIB\b|infini ?band|infinite band", re.I | re.A)
IMAGENET = re.compile(r"imagenet|ILSVRC|resnet", re.I)
SYNTHETIC = re.compile(r"synthetic|合成|dummy|fake", re.I)
IMAGENET_IMAGES, IMAGENET_CLASSES = 1_281_167, 1000
# Every training image of a whole batch right before the first epoch ends.
PERFECT = 1.0


def check(report: Report) -> Iterator[Finding]:
    is_imagenet = report.mentions(IMAGENET)
    speaks_of_fabric = any(FABRIC.search(passage.text[:2000]) for passage in report.prose)
    for block in report.code:
        if is_imagenet:
            yield from _dataset(report, block)
        if speaks_of_fabric:
            yield from _network(report, block)
    if is_imagenet:
        yield from _accuracy(report)
    yield from _names(report)


def _dataset(report: Report, block: CodeBlock) -> Iterator[Finding]:
    read = [
        (number, int(match[1]), int(match[2]))
        for number, line in block.numbered()
        if (match := FILES_READ.search(line[:500]))
    ]
    # The training files come first, those of validation after them.
    if (
        len(read) == 2
        and read[1][2] == IMAGENET_CLASSES
        and read[0][1:] != (IMAGENET_IMAGES, IMAGENET_CLASSES)
    ):
        yield Finding(
            "partial-dataset",
            Severity.WARNING,
            report.where(read[0][0]),
            claimed="ImageNet",
            derived=f"{read[0][1]:,} files of {read[0][2]} classes",
            message=f"ImageNet has {IMAGENET_IMAGES:,} training images in {IMAGENET_CLASSES} classes.",
        )


def _network(report: Report, block: CodeBlock) -> Iterator[Finding]:
    lines = [number for number, line in block.numbered() if NO_DRIVER in line[:500]]
    if lines:
        yield Finding(
            "network-driver-missing",
            Severity.WARNING,
            report.where(lines[0]),
            claimed="InfiniBand",
            derived=f"{len(lines)} warnings that its driver was not found",
            message="the log did not find the driver of InfiniBand: which network was used is not certain.",
        )


def _accuracy(report: Report) -> Iterator[Finding]:
    for log in shown_logs(report):
        if any(SYNTHETIC.search(line[:500]) for line in log.block.lines):
            continue
        perfect = [s for s in log.steps if s.top1 is not None and s.top1 == PERFECT and s.number < 1000]
        if perfect and any(s.top1 is not None and s.top1 < 0.5 for s in log.steps):
            yield Finding(
                "accuracy-too-soon",
                Severity.WARNING,
                report.where(perfect[0].line),
                claimed="training on ImageNet",
                derived=f"top-1 of 100 % at iteration {perfect[0].number}",
                message="no first epoch of ImageNet gets there: the data were few, or repeated.",
            )


def _names(report: Report) -> Iterator[Finding]:
    """Files of one printed result that are named after two precisions."""
    for result in printed_results(report):
        named: dict[str, list[str]] = {}
        lines: dict[str, int] = {}
        for line in result.lines:
            if match := PRECISION_IN_NAME.search(line.file):
                named.setdefault(match[1], []).append(line.topology)
                lines.setdefault(match[1], line.line)
        if len(named) > 1:
            second = max(lines, key=lambda name: lines[name])
            words = "; ".join(
                f"{name} in {', '.join(sorted(set(topologies)))}"
                for name, topologies in sorted(named.items())
            )
            yield Finding(
                "mixed-precision-names",
                Severity.WARNING,
                report.where(lines[second]),
                claimed="one result",
                derived=words,
                message=f"the speed-ups join runs whose files are named {' and '.join(sorted(named))}.",
            )
