"""Products that the text works out wrongly, or with a time of a step that another line gives otherwise."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from trainmark.published.audit.finding import Finding, Severity
from trainmark.published.audit.report.number import normal
from trainmark.published.audit.report.report import Report

LONGEST_LINE = 400
DIGITS = r"~?\$?(\d[\d,]{0,15}(?:\.\d{1,9})?(?:e[+-]?\d{1,3})?)"
TIME = "ms|s|secs?|seconds?|mins?|minutes?|h|hrs?|hours?|days?"
THING = (
    "steps?|tokens?|iters?|iterations?|gpus?|nodes?|samples?|images?|epochs?|卡|flops?|params?|parameters?"
)
UNIT = rf"(?: ?({TIME}|[kMBGT]|{THING})(?![\w/]))?"
TERM = re.compile(DIGITS + UNIT, re.I | re.A)
# What follows a result and changes its size, or makes it part of a longer sum.
LARGER_UNIT = (
    r"[%$]|[kmgtp]?i?b(?![a-z])|million|billion|trillion|thousand|[kmgtpe]flop|weeks?|months?|years?|亿|万"
)
MORE = rf"[\w.,]?\d|\s?[*×/+^-]\s?[\d(a-z]|\s?(?:{LARGER_UNIT})"
PRODUCT = re.compile(
    rf"(?:{DIGITS}{UNIT}\s?[*×x]\s?){{1,5}}{DIGITS}{UNIT}\s?(?:=>|~=|≈|=)\s?{DIGITS}{UNIT}(?!{MORE})",
    re.I | re.A,
)
EQUALS = re.compile(r"=>|~=|≈|=")
# A product that something else is part of is not whole: `(a + 2) * 3`, `x2 * 3`, `1 + 2 * 3`.
PART_OF_MORE = re.compile(r"[\w.)\]]$|\S\s?[*/+^×-]\s?$")
SECONDS = {
    "ms": 1e-3, "s": 1.0, "sec": 1.0, "second": 1.0, "min": 60.0, "minute": 60.0,
    "h": 3600.0, "hr": 3600.0, "hour": 3600.0, "day": 86400.0,
}  # fmt: skip
THOUSANDS = {"k": 1e3, "m": 1e6, "b": 1e9, "g": 1e9, "t": 1e12}
STEP_TIME = re.compile(
    DIGITS + r" ?(ms|s|secs?|seconds?) ?(?:/|per|an|each|a) ?(?:iter|step|it\b|iteration)", re.I | re.A
)
# Text rounds as it goes.
TOLERANCE = 0.02
NEAR = 5


@dataclass(frozen=True)
class Term:
    """A number of a sum; `seconds` is whether it is a time, then in seconds."""

    value: float
    unit: float
    seconds: bool
    text: str


def check(report: Report) -> Iterator[Finding]:
    lines = sorted(_lines(report))
    step_times = [
        (number, _term(match[1], match[2], match[0]))
        for number, text in lines
        for match in STEP_TIME.finditer(text)
    ]
    for number, text in lines:
        for match in PRODUCT.finditer(text):
            if not PART_OF_MORE.search(text[: match.start()]):
                yield from _product(report, number, match[0], step_times)


def _lines(report: Report) -> Iterator[tuple[int, str]]:
    for passage in (*report.headings, *report.prose):
        if len(passage.text) <= LONGEST_LINE:
            yield passage.line, passage.text
    for block in report.code:
        for number, line in block.numbered():
            if len(line) <= LONGEST_LINE:
                yield number, normal(line)


def _product(report: Report, line: int, text: str, step_times: list[tuple[int, Term]]) -> Iterator[Finding]:
    left, right = EQUALS.split(text)
    factors = [_term(match[1], match[2], match[0]) for match in TERM.finditer(left)]
    (claimed,) = [_term(match[1], match[2], match[0]) for match in TERM.finditer(right)][:1]
    times = [factor for factor in factors if factor.seconds]
    if len(times) > 1 or bool(times) != claimed.seconds:
        return
    derived = prod(factor.value for factor in factors)
    slack = 1.5 * claimed.unit + TOLERANCE * derived
    if abs(claimed.value - derived) > slack:
        yield Finding(
            "product-mismatch",
            Severity.ERROR,
            report.where(line),
            claimed=claimed.text.strip(),
            derived=f"{derived:.4g}{' s' if claimed.seconds else ''}",
            message=f"{left.strip()} is {derived:.4g}{' s' if claimed.seconds else ''}.",
        )
    for used in times:
        yield from _step_time(report, line, used, left, step_times)


def _step_time(
    report: Report, line: int, used: Term, text: str, stated: list[tuple[int, Term]]
) -> Iterator[Finding]:
    """The time of a step that a sum reckons with, against the one that a line nearby gives."""
    near = [(number, term) for number, term in stated if abs(number - line) <= NEAR and number != line]
    differs = [(n, t) for n, t in near if abs(t.value - used.value) > t.unit / 2 + used.unit / 2]
    if near and len(differs) == len(near) and 0.5 < used.value / near[0][1].value < 2:
        place, term = near[0]
        yield Finding(
            "step-time-mismatch",
            Severity.ERROR,
            report.where(line),
            claimed=used.text.strip(),
            derived=term.text.strip(),
            message=f"line {place} gives {term.text.strip()}.",
        )


def _term(digits: str, unit: str | None, text: str) -> Term:
    plain = digits.replace(",", "")
    mantissa, _, exponent = plain.lower().partition("e")
    last = 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
    name = (unit or "").lower()
    scale = SECONDS.get(name) or SECONDS.get(name.removesuffix("s"))
    factor = scale or THOUSANDS.get(name, 1.0)
    return Term(float(plain) * factor, last * factor, scale is not None, text)
