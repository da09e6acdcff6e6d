"""The device that a heading names against the one that the sentence below it says was used."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from trainmark.published.audit.finding import Finding, Severity
from trainmark.published.audit.report.number import normal
from trainmark.published.audit.report.report import Passage, Report

MENTION = re.compile(
    r"(?<![\w-])([VAHPTLB]\d{2,4}S?)(?:[- ]?(?:SXM\d?|PCIe?|NVL|HBM\de?))?[- (]{0,2}"
    r"(?:(\d{2,3}) ?G(?:i?B)?(?![a-z]))?",
    re.A,
)
SPEAKS_OF_RESULTS = re.compile(
    r"results? (?:were|was|are)|obtained|measured|measurements|performed|(?:ran|running|run) ", re.I
)
REACH = 8


@dataclass(frozen=True)
class Mention:
    """A device by its family, and its memory where that is said."""

    family: str
    gigabytes: int | None
    text: str


def check(report: Report) -> Iterator[Finding]:
    for heading in report.headings:
        named = _mentions(heading.text)
        below = _first_sentence(report, heading) if len(named) == 1 else None
        used = _mentions(below.text[:2000]) if below else []
        if below and len(used) == 1 and _contradict(named[0], used[0]):
            yield Finding(
                "heading-mismatch",
                Severity.ERROR,
                report.where(heading.line),
                claimed=named[0].text,
                derived=used[0].text,
                message=f"the results under this heading are of {used[0].text} by line {below.line}.",
            )


def _first_sentence(report: Report, heading: Passage) -> Passage | None:
    """The first sentence under a heading that says what its results were obtained on."""
    table = min((t.line for t in report.tables if t.line > heading.line), default=None)
    for passage in report.prose:
        is_below = (
            heading.line < passage.line <= heading.line + REACH and passage.headings == heading.headings
        )
        if (
            is_below
            and (table is None or passage.line < table)
            and SPEAKS_OF_RESULTS.search(passage.text[:2000])
        ):
            return passage
    return None


def _mentions(text: str) -> list[Mention]:
    mentions: dict[tuple[str, str | None], Mention] = {}
    for match in MENTION.finditer(normal(text)):
        memory = int(match[2]) if match[2] else None
        mentions.setdefault((match[1], match[2]), Mention(match[1], memory, match[0].strip(" -(")))
    # `DGX A100 (8x A100 80GB)` names one device, once without its memory.
    with_memory = {mention.family for mention in mentions.values() if mention.gigabytes}
    return [m for m in mentions.values() if m.gigabytes or m.family not in with_memory]


def _contradict(one: Mention, other: Mention) -> bool:
    sizes_differ = one.gigabytes and other.gigabytes and one.gigabytes != other.gigabytes
    return one.family != other.family or bool(sizes_differ)
