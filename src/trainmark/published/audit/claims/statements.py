"""What sentences say of a run: how long it took, how many epochs, how accurate and how fast it was."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from trainmark.published.audit.report.number import Number, parse_number
from trainmark.published.audit.report.report import Report

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
    return report.cached("statements", _all)


def _all(report: Report) -> Iterator[Statement]:
    for passage in report.prose:
        if len(passage.text) > LONGEST_LINE:
            continue
        for sentence in SENTENCE.split(passage.text):
            statement = _statement(passage.line, sentence) if HAS_DIGIT.search(sentence) else None
            if statement and statement.says_something and not NOT_MEASURED.search(sentence):
                yield statement


def _statement(line: int, sentence: str) -> Statement:
    epochs = _only(EPOCHS.findall(sentence))
    accuracy = _only(PERCENT.findall(sentence)) if SPEAKS_OF_ACCURACY.search(sentence) else None
    rates = RATE.findall(sentence)
    return Statement(
        line=line,
        seconds=parse_number(_only(SECONDS.findall(sentence)) or ""),
        epochs=int(epochs) if epochs else None,
        accuracy=parse_number(accuracy or ""),
        rate=parse_number(rates[0][0]) if len(rates) == 1 else None,
        rate_unit=rates[0][1].lower() if len(rates) == 1 else None,
    )


def _only(texts: list[str]) -> str | None:
    return texts[0] if len(set(texts)) == 1 else None
