"""How a report measured: its rule and recipe, what its logs and scripts give away, and what is left out.

The rule is compared with the one used and with the steps of the runs, the recipe with commands and logs. Of
shown logs: data, network and accuracy, the number of devices against path, command and rates, one log under
two topologies. Left out may be placeholders, blocks and rows, the environment, repeats and logs.
"""

from __future__ import annotations

import re
from functools import cache
from math import isclose
from pathlib import Path
from statistics import median
from typing import Any

from trainmark.audit.finding import AuditFinding, Findings
from trainmark.audit.grid import all_series
from trainmark.audit.models import names_device
from trainmark.audit.report import CodeBlock, Report
from trainmark.audit.statements import (
    PRECISION_IN_NAME,
    MeasuringRule,
    PrintedCase,
    ShownLog,
    ShownSetting,
    printed_results,
    shown_logs,
    stamp_seconds,
    stated_repeats,
    stated_rules,
    used_rules,
)
from trainmark.audit.terms import is_blank

# Below this a window holds hardly more than its own edges.
FEWEST_ITERATIONS = 20


def check_measuring_rule(report: Report) -> Findings:
    stated, used = list(stated_rules(report)), list(used_rules(report))
    yield from _check_stated_rule(stated, used)
    yield from _check_run_lengths(report, stated, used)
    yield from _check_repeats(report)
    for rule in (*stated, *used):
        if rule.measured is not None and rule.measured < FEWEST_ITERATIONS:
            derived = f"at least {FEWEST_ITERATIONS}"
            message = f"a window of {rule.measured} iterations says little about steady training."
            yield AuditFinding(
                "window-too-short", rule.line, f"{rule.measured} iterations measured", derived, message
            )


def _check_stated_rule(stated: list[MeasuringRule], used: list[MeasuringRule]) -> Findings:
    if len({rule.total for rule in stated}) != 1 or len({(rule.total, rule.measured) for rule in used}) != 1:
        return
    claim, did = stated[0], used[0]
    differs = claim.total != did.total or (claim.measured is not None and claim.measured != did.measured)
    if differs:
        message = f"the command on line {did.line} measures {_rule_words(did)}."
        yield AuditFinding("rule-mismatch", claim.line, _rule_words(claim), _rule_words(did), message)


def _check_run_lengths(report: Report, stated: list[MeasuringRule], used: list[MeasuringRule]) -> Findings:
    """A run that stops after fewer iterations than its rule needs cannot have been measured by it."""
    totals = [(rule.total, rule.line) for rule in (*stated, *used) if rule.total]
    if not totals:
        return
    needed, rule_line = max(totals)
    for log in shown_logs(report):
        limit = log.first("steps")
        if limit and 0 < int(limit.value) < needed:
            derived = f"{needed} iterations"
            message = f"the rule on line {rule_line} needs {needed} iterations; the run stops before."
            yield AuditFinding(
                "too-few-iterations", limit.line, f"{limit.value} iterations a run", derived, message
            )


def _check_repeats(report: Report) -> Findings:
    repeats = {count: line for line, count in stated_repeats(report)}
    if len(repeats) != 1:
        return
    (count, line) = next(iter(repeats.items()))
    for result in printed_results(report):
        by_count: dict[int, list[PrintedCase]] = {}
        for case in result.cases:
            if case.runs and len(case.runs) != count:
                by_count.setdefault(len(case.runs), []).append(case)
        for listed, cases in by_count.items():
            message = f"{listed} runs of {', '.join(case.topology for case in cases)} are listed."
            yield AuditFinding(
                "repeats-mismatch", cases[0].line, f"{count} runs (line {line})", f"{listed} runs", message
            )


def _rule_words(rule: MeasuringRule) -> str:
    return f"{rule.total} iterations" + (f", the last {rule.measured}" if rule.measured is not None else "")


RECIPE_FILE = Path(__file__).with_name("recipe.yaml")
MOMENTUM_IN_PROSE = re.compile(r"(?:momentum|动量)[^\d.]{0,12}(\d?\.\d{1,9})(?!\d)", re.I)


def check_recipe(report: Report) -> Findings:
    momenta = {
        float(match[1]): passage.line
        for passage in report.prose
        if (match := MOMENTUM_IN_PROSE.search(passage.text[:2000]))
    }
    stated = next(iter(momenta.items())) if len(momenta) == 1 else None
    for log in shown_logs(report):
        momentum = log.first("momentum")
        expected, source = _expected_momentum(log, stated)
        if momentum and expected is not None and not isclose(float(momentum.value), expected):
            derived = f"momentum {expected:g}"
            message = f"{source} has a momentum of {expected:g}."
            yield AuditFinding(
                "recipe-contradicted", momentum.line, f"momentum {momentum.value}", derived, message
            )


def _expected_momentum(log: ShownLog, stated: tuple[float, int] | None) -> tuple[float | None, str]:
    if stated:
        return stated[0], f"the text on line {stated[1]}"
    recipe, decay = _recipe(), log.first("weight_decay")
    if (
        decay
        and _is_number(decay.value)
        and isclose(float(decay.value), recipe["weight_decay"], rel_tol=1e-3)
    ):
        return float(recipe["momentum"]), f"the recipe whose weight decay this is ({recipe['name']})"
    return None, ""


def _is_number(text: str) -> bool:
    return bool(re.fullmatch(r"\d{0,4}\.?\d{1,20}(?:e-?\d{1,3})?", text))


@cache
def _recipe() -> dict[str, Any]:
    import yaml

    recipe: dict[str, Any] = yaml.safe_load(RECIPE_FILE.read_text(encoding="utf-8"))
    return recipe


PLACEHOLDER = re.compile(r"\bTODO\b|\bFIXME\b|\bTBD\b|\[X{3,}\]|待补充|待完善", re.A)
EMPTY_LINK = re.compile(r"\[[^\[\]]{1,200}\]\(\s{0,4}\)")
SPEAKS_OF_LOGS = re.compile(r"\.log\b|日志|\blogs?\b|\.tar\.gz|\.tgz", re.I | re.A)
SPEAKS_OF_REPEATS = re.compile(
    r"\d ?次|\bmedian\b|\brepeat|\bruns\b|\btrials\b|中位|中值|median_speed", re.I | re.A
)
# A table with a heading is a table; only a whole report owes its reader the circumstances.
LEAST_REPORT_LINES = 40


def check_missing(report: Report) -> Findings:
    for passage in report.prose:
        text = passage.text[:2000]
        if match := PLACEHOLDER.search(text) or EMPTY_LINK.search(text):
            yield _missing_finding("placeholder", passage.line, match[0], "a place left to fill in.")
    for block in report.code:
        if not any(line.strip() for line in block.lines):
            yield _missing_finding("empty-block", block.line - 1, "a script or output", "the block is empty.")
    yield from _check_empty_rows(report)
    yield from _check_circumstances(report)


def _check_empty_rows(report: Report) -> Findings:
    """Rows that name a configuration and measure nothing."""
    for series in all_series(report):
        heads = [figure.column for row in series.rows for figure in row.of("throughput")]
        if not heads:
            continue
        for row in series.rows:
            if row.of("throughput") or row.of("speedup") or row.of("time_to_train"):
                continue
            if all(is_blank(row.cells[column].text) for column in set(heads)):
                message = "the row names a configuration and has no figure."
                yield _missing_finding("empty-row", row.line, row.cells[0].text or "a row", message)


def _check_circumstances(report: Report) -> Findings:
    length = len(report.prose) + len(report.headings) + sum(len(block.lines) for block in report.code)
    rates = [row.line for series in all_series(report) for row in series.rows if row.of("throughput")]
    if length < LEAST_REPORT_LINES or not rates:
        return
    if not names_device(report):
        yield _missing_finding(
            "missing-environment",
            rates[0],
            "a throughput",
            "no device is named: the figure compares with none.",
        )
    if not report.mentions(SPEAKS_OF_LOGS):
        yield _missing_finding("missing-logs", rates[0], "a throughput", "no log is given to check it by.")
    if not report.mentions(SPEAKS_OF_REPEATS):
        message = "the report does not say how often a figure was measured."
        yield _missing_finding("missing-repeats", rates[0], "a throughput", message)


def _missing_finding(code: str, line: int, claimed: str, message: str) -> AuditFinding:
    return AuditFinding(code, line, claimed, "nothing", message)


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
