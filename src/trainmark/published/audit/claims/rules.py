"""The rule by which a report says it measured, and the one its commands used."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from trainmark.published.audit.report.report import Report

LONGEST_LINE = 2000
ITERATION = r" ?(?:个 ?)?(?:iter(?:ation)?s?|steps?|batch(?:es)?|步)(?![a-z])"
SKIPPED = re.compile(
    r"(?:排除|去掉|丢弃|跳过|忽略|(?:skip|ignor|discard|exclud|drop)\w*)[^\d,。]{0,20}?(\d{1,6})" + ITERATION,
    re.I,
)
IN_ALL = re.compile(
    r"(?:取[^,。]{0,24}?前|(?:over|of|use[sd]?|take[sn]?|runs?) (?:the )?first) ?(\d{1,6})" + ITERATION, re.I
)
LAST_STEPS = re.compile(r"(?:后面?|last|next|following) ?(\d{1,6})" + ITERATION, re.I)
REPEATS = re.compile(
    r"(?:取|进行了?|做|测试|重复|运行) ?(\d{1,3}) ?次"
    r"|(?:median|mean|average) of (?:the )?(\d{1,3})(?: \w+)? (?:runs?|trials?|repeats?|repetitions?)"
    r"|(?:repeated|run|ran) (\d{1,3}) times"
    r"|(?<![\d.])(\d{1,3}) (?:runs|repeats|repetitions|trials) (?:each|of each|per)",
    re.I,
)
USED = re.compile(r"--warmup_batches[ =](\d{1,6})\s{1,4}--train_batches[ =](\d{1,6})")


@dataclass(frozen=True)
class Rule:
    """A window of iterations: how many are run, and how many of them at the end are measured."""

    line: int
    total: int | None
    measured: int | None


def stated_rules(report: Report) -> Iterator[Rule]:
    """What sentences say: `排除前100个iter取后100个iter`, `of the first 150 iterations the last 100`."""
    for passage in report.prose:
        text = passage.text[:LONGEST_LINE]
        skipped, in_all, tail = SKIPPED.search(text), IN_ALL.search(text), LAST_STEPS.search(text)
        measured = int(tail[1]) if tail else None
        if skipped and tail:
            yield Rule(passage.line, int(skipped[1]) + int(tail[1]), measured)
        elif in_all and not skipped:
            yield Rule(passage.line, int(in_all[1]), measured)


def used_rules(report: Report) -> Iterator[Rule]:
    """What the commands of the extraction say."""
    for block in report.code:
        for number, line in block.numbered():
            if match := USED.search(line[: 2 * LONGEST_LINE]):
                yield Rule(number, int(match[2]), int(match[2]) - int(match[1]))


def stated_repeats(report: Report) -> Iterator[tuple[int, int]]:
    """Line and number of runs, wherever the text gives one."""
    for passage in report.prose:
        for match in REPEATS.finditer(passage.text[:LONGEST_LINE]):
            yield passage.line, int(next(filter(None, match.groups())))
