"""What sentences say: of a run, how long it took, how many epochs, how accurate and how fast it was; of the
report, the rule by which it measured.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from trainmark.audit.number import Number, parse_number
from trainmark.audit.report import Report

LONGEST_LINE = 2000
HAS_DIGIT = re.compile(r"\d")
SENTENCE = re.compile(r"[。;；!？]|\.(?=\s)")
# ASCII word borders: a Chinese character may follow a unit.
NUMBER = r"(?<![\d.,])(\d[\d,]{0,14}(?:\.\d{1,6})?)"
SECONDS = re.compile(NUMBER + r" ?(?:秒|(?:s|secs?|seconds)\b)", re.A)
EPOCHS = re.compile(r"(?<![\d.,])(\d{1,5}) ?个? ?(?:epochs?\b|轮)", re.I | re.A)
PERCENT = re.compile(r"(?<![\d.,~-])(\d{1,2}\.\d{1,4}) ?%")
RATE = re.compile(
    NUMBER + r" ?(?:imgs?|images?|samples?|张) ?(?:/|per) ?(s|sec|second|ms|秒)(?![a-z])", re.I | re.A
)
SPEAKS_OF_ACCURACY = re.compile(r"精度|准确率|accuracy|top-?_?1", re.I)
# What another party claims, or what has to be reached, is no result of this report.
NOT_MEASURED = re.compile(r"要求|目标|公布|官方|target|requir|published|official|reported by", re.I)


@dataclass(frozen=True)
class Statement:
    """One sentence about one run; None where it does not say, or says two things."""

    line: int
    seconds: Number | None
    epochs: int | None
    accuracy: Number | None
    rate: Number | None
    rate_unit: str | None

    @property
    def says_something(self) -> bool:
        return any((self.seconds, self.epochs, self.accuracy, self.rate))


def statements(report: Report) -> list[Statement]:
    return report.cached("statements", _all_statements)


def _all_statements(report: Report) -> Iterator[Statement]:
    for passage in report.prose:
        if len(passage.text) > LONGEST_LINE:
            continue
        for sentence in SENTENCE.split(passage.text):
            statement = _statement(passage.line, sentence) if HAS_DIGIT.search(sentence) else None
            if statement and statement.says_something and not NOT_MEASURED.search(sentence):
                yield statement


def _statement(line: int, sentence: str) -> Statement:
    epochs = _only_text(EPOCHS.findall(sentence))
    accuracy = _only_text(PERCENT.findall(sentence)) if SPEAKS_OF_ACCURACY.search(sentence) else None
    rates = RATE.findall(sentence)
    return Statement(
        line=line,
        seconds=parse_number(_only_text(SECONDS.findall(sentence)) or ""),
        epochs=int(epochs) if epochs else None,
        accuracy=parse_number(accuracy or ""),
        rate=parse_number(rates[0][0]) if len(rates) == 1 else None,
        rate_unit=rates[0][1].lower() if len(rates) == 1 else None,
    )


def _only_text(texts: list[str]) -> str | None:
    return texts[0] if len(set(texts)) == 1 else None


ITERATION = r" ?(?:个 ?)?(?:iter(?:ation)?s?|steps?|batch(?:es)?|步)(?![a-z])"
SKIPPED_STEPS = re.compile(
    r"(?:排除|去掉|丢弃|跳过|忽略|(?:skip|ignor|discard|exclud|drop)\w*)[^\d,。]{0,20}?(\d{1,6})" + ITERATION,
    re.I,
)
TOTAL_STEPS = re.compile(
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
USED_OPTIONS = re.compile(r"--warmup_batches[ =](\d{1,6})\s{1,4}--train_batches[ =](\d{1,6})")


@dataclass(frozen=True)
class MeasuringRule:
    """A window of iterations: how many are run, and how many of them at the end are measured."""

    line: int
    total: int | None
    measured: int | None


def stated_rules(report: Report) -> Iterator[MeasuringRule]:
    """What sentences say: `排除前100个iter取后100个iter`, `of the first 150 iterations the last 100`."""
    for passage in report.prose:
        text = passage.text[:LONGEST_LINE]
        skipped, in_all, tail = SKIPPED_STEPS.search(text), TOTAL_STEPS.search(text), LAST_STEPS.search(text)
        measured = int(tail[1]) if tail else None
        if skipped and tail:
            yield MeasuringRule(passage.line, int(skipped[1]) + int(tail[1]), measured)
        elif in_all and not skipped:
            yield MeasuringRule(passage.line, int(in_all[1]), measured)


def used_rules(report: Report) -> Iterator[MeasuringRule]:
    """What the commands of the extraction say."""
    for block in report.code:
        for number, line in block.numbered():
            if match := USED_OPTIONS.search(line[: 2 * LONGEST_LINE]):
                yield MeasuringRule(number, int(match[2]), int(match[2]) - int(match[1]))


def stated_repeats(report: Report) -> Iterator[tuple[int, int]]:
    """Line and number of runs, wherever the text gives one."""
    for passage in report.prose:
        for match in REPEATS.finditer(passage.text[:LONGEST_LINE]):
            yield passage.line, int(next(filter(None, match.groups())))
