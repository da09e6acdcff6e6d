"""Scripts that cannot run, or do not do, what the text says."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainmark.published.audit.finding import Finding, Severity
from trainmark.published.audit.report.report import Report

ASSIGNMENT = re.compile(r"\s{0,40}([A-Za-z_]\w{1,60}) ?= ?\"?([A-Za-z_][\w.]{2,80})\"?\s{0,40}$")
LINE_IN_TEXT = re.compile(r"(?<!\d)(\d{1,5}) ?行|\bline (\d{1,5})\b")
LINE_IN_CODE = re.compile(r"\s{0,40}# line (\d{1,5})\b")
MODEL = re.compile(r"BERT|GPT|VGG|SSD|RCNN|ResNet|Transformer|Inception|NCF|DLRM|Wide", re.I)
SCRIPT = re.compile(r"/(BERT|GPT|VGG16|SSD|MaskRCNN)/[\w./-]{0,80}?([\w-]{1,80}\.py)\b")
LEAST_LENGTH = 4
NEAR = 3


def check(report: Report) -> Iterator[Finding]:
    yield from _misspelt(report)
    yield from _line_numbers(report)
    title = report.title.lower() if MODEL.search(report.title) else ""
    for passage in report.prose:
        match = SCRIPT.search(passage.text[:2000])
        if match and title and match[1].lower() not in title:
            yield Finding(
                "script-of-another-model",
                Severity.WARNING,
                report.where(passage.line),
                claimed=match[0],
                derived=f"a script for {report.title}",
                message=f"{match[2]} of {match[1]} is named for the figures of another model.",
            )


def _misspelt(report: Report) -> Iterator[Finding]:
    """One name assigned from two that differ by a letter cut off, or by a digit for a letter."""
    first: dict[str, tuple[str, int]] = {}
    for block in report.code:
        for number, line in block.numbered():
            match = ASSIGNMENT.match(line) if len(line) < 300 else None
            if not match:
                continue
            earlier, place = first.setdefault(match[1], (match[2], number))
            if _slip(earlier, match[2]):
                yield Finding(
                    "misspelt-in-code",
                    Severity.WARNING,
                    report.where(number),
                    claimed=f"{match[1]} = {match[2]}",
                    derived=f"{match[1]} = {earlier}",
                    message=f"line {place} has {earlier}; the code as shown does not run.",
                )


def _slip(right: str, shown: str) -> bool:
    if len(right) < LEAST_LENGTH:
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


def _line_numbers(report: Report) -> Iterator[Finding]:
    """`file.py 46 行：` before a block that begins with `# line 197`."""
    prose = {passage.line: passage.text for passage in report.prose}
    for block in report.code:
        comment = LINE_IN_CODE.match(block.lines[0]) if block.lines else None
        before = next((prose[n] for n in range(block.line - 1, block.line - 1 - NEAR, -1) if n in prose), "")
        named = [int(a or b) for a, b in LINE_IN_TEXT.findall(before[:500])]
        if comment and named and int(comment[1]) not in named:
            yield Finding(
                "line-number-mismatch",
                Severity.NOTE,
                report.where(block.line),
                claimed=f"line {named[0]} (text)",
                derived=f"line {comment[1]} (code)",
                message="the text and the code below it name different lines to change.",
            )
