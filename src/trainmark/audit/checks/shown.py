"""What shown logs and scripts give away about the runs.

The data, network and accuracy of a log, its number of devices against its path, command and own rates, one
log shown under two topologies, and scripts that cannot run or do not do what the text says.
"""

from __future__ import annotations

import re
from statistics import median

from trainmark.audit.excerpts import (
    PRECISION_IN_NAME,
    ShownLog,
    ShownSetting,
    printed_results,
    shown_logs,
    stamp_seconds,
)
from trainmark.audit.finding import AuditFinding, Findings
from trainmark.audit.report import CodeBlock, Report

FILES_READ = re.compile(r"read (\d{1,12}) files from (\d{1,9}) directories")
NO_DRIVER = "no userspace device-specific driver found"
FABRIC = re.compile(r"\bIB\b|infini ?band|infinite band", re.I | re.A)
IMAGENET = re.compile(r"imagenet|ILSVRC|resnet", re.I)
SYNTHETIC = re.compile(r"synthetic|合成|dummy|fake", re.I)
IMAGENET_IMAGES, IMAGENET_CLASSES = 1_281_167, 1000
# Every training image of a whole batch right before the first epoch ends.
PERFECT_ACCURACY = 1.0


def check_shown_runs(report: Report) -> Findings:
    is_imagenet = report.mentions(IMAGENET)
    speaks_of_fabric = any(FABRIC.search(passage.text[:2000]) for passage in report.prose)
    for block in report.code:
        if is_imagenet:
            yield from _check_dataset(block)
        if speaks_of_fabric:
            yield from _check_network(block)
    if is_imagenet:
        yield from _check_accuracy(report)
    yield from _check_names(report)


def _check_dataset(block: CodeBlock) -> Findings:
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
        derived = f"{read[0][1]:,} files of {read[0][2]} classes"
        message = f"ImageNet has {IMAGENET_IMAGES:,} training images in {IMAGENET_CLASSES} classes."
        yield AuditFinding("partial-dataset", read[0][0], "ImageNet", derived, message)


def _check_network(block: CodeBlock) -> Findings:
    lines = [number for number, line in block.numbered() if NO_DRIVER in line[:500]]
    if lines:
        derived = f"{len(lines)} warnings that its driver was not found"
        message = "the log did not find the driver of InfiniBand: which network was used is not certain."
        yield AuditFinding("network-driver-missing", lines[0], "InfiniBand", derived, message)


def _check_accuracy(report: Report) -> Findings:
    for log in shown_logs(report):
        if any(SYNTHETIC.search(line[:500]) for line in log.block.lines):
            continue
        perfect = [
            s for s in log.steps if s.top1 is not None and s.top1 == PERFECT_ACCURACY and s.number < 1000
        ]
        if perfect and any(s.top1 is not None and s.top1 < 0.5 for s in log.steps):
            derived = f"top-1 of 100 % at iteration {perfect[0].number}"
            message = "no first epoch of ImageNet gets there: the data were few, or repeated."
            yield AuditFinding("accuracy-too-soon", perfect[0].line, "training on ImageNet", derived, message)


def _check_names(report: Report) -> Findings:
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
            message = f"the speed-ups join runs whose files are named {' and '.join(sorted(named))}."
            yield AuditFinding("mixed-precision-names", lines[second], "one result", words, message)


# The images of a step over the batch of a device come out whole to about a percent.
RATE_TOLERANCE = 0.03
LEAST_STEPS = 4


def check_shown_world_size(report: Report) -> Findings:
    for log in shown_logs(report):
        world, nodes = log.first("world_size"), log.first("nodes")
        per_node = log.first("devices_per_node")
        if log.topology:
            stated = f"{log.topology[0]}n{log.topology[1]}g"
            yield from _compare_count(world, log.devices, "world size", stated)
            yield from _compare_count(nodes, log.topology[0], "number of nodes", stated)
            yield from _compare_count(per_node, log.topology[1], "number of devices a node", stated)
        elif nodes and per_node:
            devices = int(nodes.value) * int(per_node.value)
            yield from _compare_count(world, devices, "world size", f"the command on line {nodes.line}")
        yield from _check_rate(log, world)


def _compare_count(stated: ShownSetting | None, expected: int | None, what: str, source: str) -> Findings:
    if stated and expected and int(stated.value) != expected:
        message = f"the {what} is {expected} by {source}."
        yield AuditFinding(
            "world-size-mismatch", stated.line, f"{what} {stated.value}", f"{what} {expected}", message
        )


def _check_rate(log: ShownLog, world: ShownSetting | None) -> Findings:
    """A rate times the seconds of its step gives the images of the step, whatever was typed above it."""
    batch = log.first("batch")
    if not (world and batch and int(batch.value) and int(world.value)):
        return
    images = [
        now.rate * (stamp_seconds(now.stamp) - stamp_seconds(before.stamp))
        for before, now in zip(log.steps, log.steps[1:], strict=False)
        if now.number == before.number + 1 and now.rate and now.stamp and before.stamp
    ]
    if len(images) < LEAST_STEPS:
        return
    derived = median(images) / int(batch.value)
    whole = round(derived)
    is_clear = whole > 0 and abs(derived - whole) <= RATE_TOLERANCE * whole
    if is_clear and abs(whole - int(world.value)) > RATE_TOLERANCE * int(world.value):
        size, right = f"world size {world.value}", f"world size {whole}"
        message = (
            f"rates times seconds between lines are about {median(images):.0f} images a step, "
            f"{whole} × {batch.value}: the log is of {whole} devices."
        )
        yield AuditFinding("rate-contradicts-world-size", world.line, size, right, message)


# Fewer stamps can agree by chance.
LEAST_STAMPS = 3


def check_copied_logs(report: Report) -> Findings:
    first: dict[tuple[str, ...], ShownLog] = {}
    for log in shown_logs(report):
        if len(log.stamps) < LEAST_STAMPS or len(set(log.stamps)) < LEAST_STAMPS:
            continue
        earlier = first.setdefault(log.stamps, log)
        if earlier is not log and _log_name(log) != _log_name(earlier):
            derived = f"the log of {_log_name(earlier)} on line {earlier.block.line}"
            message = (
                f"all {len(log.stamps)} time stamps are those of the log on line {earlier.block.line}: "
                "one run is shown as two."
            )
            yield AuditFinding("copied-log", log.block.line, f"a log of {_log_name(log)}", derived, message)


def _log_name(log: ShownLog) -> str:
    if log.topology:
        return "{}n{}g".format(*log.topology)
    world = log.first("world_size")
    return f"world size {world.value}" if world else "no stated topology"


ASSIGNMENT = re.compile(r"\s{0,40}([A-Za-z_]\w{1,60}) ?= ?\"?([A-Za-z_][\w.]{2,80})\"?\s{0,40}$")
LINE_IN_TEXT = re.compile(r"(?<!\d)(\d{1,5}) ?行|\bline (\d{1,5})\b")
LINE_IN_CODE = re.compile(r"\s{0,40}# line (\d{1,5})\b")
MODEL = re.compile(r"BERT|GPT|VGG|SSD|RCNN|ResNet|Transformer|Inception|NCF|DLRM|Wide", re.I)
SCRIPT = re.compile(r"/(BERT|GPT|VGG16|SSD|MaskRCNN)/[\w./-]{0,80}?([\w-]{1,80}\.py)\b")
LEAST_NAME_LENGTH = 4
LINES_NEAR = 3


def check_shown_code(report: Report) -> Findings:
    yield from _check_misspelt(report)
    yield from _check_line_numbers(report)
    title = report.title.lower() if MODEL.search(report.title) else ""
    for passage in report.prose:
        match = SCRIPT.search(passage.text[:2000])
        if match and title and match[1].lower() not in title:
            message = f"{match[2]} of {match[1]} is named for the figures of another model."
            yield AuditFinding(
                "script-of-another-model", passage.line, match[0], f"a script for {report.title}", message
            )


def _check_misspelt(report: Report) -> Findings:
    """One name assigned from two that differ by a letter cut off, or by a digit for a letter."""
    first: dict[str, tuple[str, int]] = {}
    for block in report.code:
        for number, line in block.numbered():
            match = ASSIGNMENT.match(line) if len(line) < 300 else None
            if not match:
                continue
            earlier, place = first.setdefault(match[1], (match[2], number))
            if _slip(earlier, match[2]):
                message = f"line {place} has {earlier}; the code as shown does not run."
                yield AuditFinding(
                    "misspelt-in-code", number, f"{match[1]} = {match[2]}", f"{match[1]} = {earlier}", message
                )


def _slip(right: str, shown: str) -> bool:
    if len(right) < LEAST_NAME_LENGTH:
        return False
    if right[:-1] == shown and "." in right:
        return right[-1].isalpha()
    different = [pair for pair in zip(right, shown, strict=False) if pair[0] != pair[1]]
    return (
        len(right) == len(shown)
        and len(different) == 1
        and different[0][0].isalpha()
        and different[0][1].isdigit()
    )


def _check_line_numbers(report: Report) -> Findings:
    """`file.py 46 行：` before a block that begins with `# line 197`."""
    prose = {passage.line: passage.text for passage in report.prose}
    for block in report.code:
        comment = LINE_IN_CODE.match(block.lines[0]) if block.lines else None
        before = next(
            (prose[n] for n in range(block.line - 1, block.line - 1 - LINES_NEAR, -1) if n in prose), ""
        )
        named = [int(a or b) for a, b in LINE_IN_TEXT.findall(before[:500])]
        if comment and named and int(comment[1]) not in named:
            derived = f"line {comment[1]} (code)"
            message = "the text and the code below it name different lines to change."
            yield AuditFinding(
                "line-number-mismatch", block.line, f"line {named[0]} (text)", derived, message
            )
