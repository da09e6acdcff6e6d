"""Products that do not multiply, in rows and in sentences.

Rows of a language model: tokens, sequences, batches and devices. Sentences: a product that the text works out
wrongly, or with a time of a step that another line gives otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from trainmark.audit.finding import AuditFinding, Findings
from trainmark.audit.grid import GridRow, TableFigure, TableGrid, all_grids
from trainmark.audit.models import RATES, data_parallel, language_rows, quantity
from trainmark.audit.report import Report
from trainmark.audit.terms import Number, normalize_text

# Throughput and time a step are averaged apart.
SAME_CLOCK = 0.05
ROUNDING = 0.005
# An identity that the table does not spell out holds where it holds in so many rows for each that breaks it.
AGREEING_FOR_EACH_WRONG = 3


@dataclass(frozen=True)
class Identity:
    """A figure that is the product of others of its row, by their names; `words` has their texts."""

    claimed: str
    factors: tuple[str, ...]
    words: str


PARALLEL = ("tensor_parallel", "pipeline_parallel", "data_parallel")
# The first identity of a line that a row has all figures for is checked; a certain one holds in every row.
IDENTITIES: tuple[tuple[bool, tuple[Identity, ...]], ...] = (
    (True, (Identity("tokens", ("device_tokens", "devices"), "{} × {} devices"),)),
    (
        True,
        (
            Identity("tokens", ("sequences", "sequence_length"), "{} sequences/s × {}"),
            Identity("device_tokens", ("device_sequences", "sequence_length"), "{} sequences/s × {}"),
        ),
    ),
    (True, (Identity("global_batch_tokens", ("global_batch", "sequence_length"), "{} × {}"),)),
    (
        True,
        (
            Identity(
                "global_batch", ("micro_batch", "accumulation", "copies"), "{} × {} accumulated × {} copies"
            ),
        ),
    ),
    (
        True,
        (
            Identity("devices", (*PARALLEL, "context_parallel"), "{} × {} × {} × {}"),
            Identity("devices", PARALLEL, "{} × {} × {}"),
        ),
    ),
    (
        False,
        (
            Identity(
                "global_batch",
                ("micro_batch", "accumulation", "unsharded_devices"),
                "{} × {} accumulated × {} devices",
            ),
        ),
    ),
    (
        False,
        (
            Identity("global_batch_tokens", ("tokens", "step_time"), "tokens/s × time a step"),
            Identity("batch_in_tokens", ("tokens", "step_time"), "tokens/s × time a step in tokens"),
        ),
    ),
)


@dataclass(frozen=True)
class Product:
    """A figure, the factors that make it, and what they are called."""

    claimed: TableFigure
    factors: tuple[Number, ...]
    words: str
    tolerance: float

    def holds(self) -> bool:
        low, high = prod(max(f.low, 0.0) for f in self.factors), prod(f.high for f in self.factors)
        number = self.claimed.number
        slack = 1.5 * number.unit + self.tolerance * number.value
        return bool(low <= number.value + slack and number.value - slack <= high)

    def finding(self) -> AuditFinding:
        value = f"{prod(factor.value for factor in self.factors):,.6g}"
        claimed = f"{self.claimed.cell.text} ({self.claimed.head})"
        return AuditFinding(
            "product-mismatch", self.claimed.cell.line, claimed, value, f"{self.words} is {value}."
        )


def check_row_products(report: Report) -> Findings:
    for grid in all_grids(report):
        for is_certain, identities in IDENTITIES:
            yield from _broken_products(grid, identities, is_certain)


def _broken_products(grid: TableGrid, identities: tuple[Identity, ...], is_certain: bool) -> Findings:
    tried = (
        next(filter(None, (_product(row, one) for one in identities)), None) for row in language_rows(grid)
    )
    products = [product for product in tried if product]
    wrong = [product for product in products if not product.holds()]
    right = len(products) - len(wrong)
    if not is_certain and len(wrong) * AGREEING_FOR_EACH_WRONG > right:
        return
    # Where no row holds, the heads mean something else.
    if len(wrong) > 2 and not right:
        return
    yield from (product.finding() for product in wrong)


def _product(row: GridRow, identity: Identity) -> Product | None:
    claimed, factors = quantity(row, identity.claimed), [_factor(row, name) for name in identity.factors]
    known = [factor for factor in factors if factor]
    if claimed is None or len(known) < len(factors):
        return None
    words = identity.words.format(*(text for _, text in known))
    tolerance = SAME_CLOCK if "step_time" in identity.factors else ROUNDING
    return Product(claimed, tuple(number for number, _ in known), words, tolerance)


def _factor(row: GridRow, name: str) -> tuple[Number, str] | None:
    """A factor and how it is printed; a count was not rounded."""
    if name in ("devices", "unsharded_devices", "copies"):
        count = data_parallel(row) if name == "copies" else row.devices
        # Where a column speaks of tensors or pipelines, not every device is a copy of the model.
        if not count or count != int(count) or (name == "unsharded_devices" and any(map(row.of, PARALLEL))):
            return None
        return Number(float(count), 0, step=0.0), f"{count:g}" if name == "copies" else str(count)
    figure = quantity(row, name)
    if figure is None:
        return None
    is_measured = name in RATES or name == "step_time"
    return figure.number if is_measured else Number(figure.number.value, 0, step=0.0), figure.cell.text


LONGEST_LINE = 400
DIGITS = r"~?\$?(\d[\d,]{0,15}(?:\.\d{1,9})?(?:e[+-]?\d{1,3})?)"
TIME_UNITS = "ms|s|secs?|seconds?|mins?|minutes?|h|hrs?|hours?|days?"
COUNTED_THINGS = (
    "steps?|tokens?|iters?|iterations?|gpus?|nodes?|samples?|images?|epochs?|卡|flops?|params?|parameters?"
)
UNIT = rf"(?: ?({TIME_UNITS}|[kMBGT]|{COUNTED_THINGS})(?![\w/]))?"
TERM = re.compile(DIGITS + UNIT, re.I | re.A)
# What follows a result and changes its size, or makes it part of a longer sum.
LARGER_UNIT = (
    r"[%$]|[kmgtp]?i?b(?![a-z])|million|billion|trillion|thousand|[kmgtpe]flop|weeks?|months?|years?|亿|万"
)
CONTINUES = rf"[\w.,]?\d|\s?[*×/+^-]\s?[\d(a-z]|\s?(?:{LARGER_UNIT})"
PRODUCT = re.compile(
    rf"(?:{DIGITS}{UNIT}\s?[*×x]\s?){{1,5}}{DIGITS}{UNIT}\s?(?:=>|~=|≈|=)\s?{DIGITS}{UNIT}(?!{CONTINUES})",
    re.I | re.A,
)
EQUALS = re.compile(r"=>|~=|≈|=")
# A product that something else is part of is not whole: `(a + 2) * 3`, `x2 * 3`, `1 + 2 * 3`.
PART_OF_MORE = re.compile(r"[\w.)\]]$|\S\s?[*/+^×-]\s?$")
UNIT_SECONDS = {
    "ms": 1e-3, "s": 1.0, "sec": 1.0, "second": 1.0, "min": 60.0, "minute": 60.0,
    "h": 3600.0, "hr": 3600.0, "hour": 3600.0, "day": 86400.0,
}  # fmt: skip
THOUSANDS = {"k": 1e3, "m": 1e6, "b": 1e9, "g": 1e9, "t": 1e12}
STEP_TIME = re.compile(
    DIGITS + r" ?(ms|s|secs?|seconds?) ?(?:/|per|an|each|a) ?(?:iter|step|it\b|iteration)", re.I | re.A
)
# Text rounds as it goes.
TEXT_TOLERANCE = 0.02
LINES_NEAR = 5


@dataclass(frozen=True)
class Term:
    """A number of a sum; `seconds` is whether it is a time, then in seconds."""

    value: float
    unit: float
    seconds: bool
    text: str


def check_text_products(report: Report) -> Findings:
    lines = sorted(_text_lines(report))
    step_times = [
        (number, _term(match[1], match[2], match[0]))
        for number, text in lines
        for match in STEP_TIME.finditer(text)
    ]
    for number, text in lines:
        for match in PRODUCT.finditer(text):
            if not PART_OF_MORE.search(text[: match.start()]):
                yield from _check_product(number, match[0], step_times)


def _text_lines(report: Report) -> Iterator[tuple[int, str]]:
    for passage in (*report.headings, *report.prose):
        if len(passage.text) <= LONGEST_LINE:
            yield passage.line, passage.text
    for block in report.code:
        for number, line in block.numbered():
            if len(line) <= LONGEST_LINE:
                yield number, normalize_text(line)


def _check_product(line: int, text: str, step_times: list[tuple[int, Term]]) -> Findings:
    left, right = EQUALS.split(text)
    factors = [_term(match[1], match[2], match[0]) for match in TERM.finditer(left)]
    (claimed,) = [_term(match[1], match[2], match[0]) for match in TERM.finditer(right)][:1]
    times = [factor for factor in factors if factor.seconds]
    if len(times) > 1 or bool(times) != claimed.seconds:
        return
    derived = prod(factor.value for factor in factors)
    slack = 1.5 * claimed.unit + TEXT_TOLERANCE * derived
    if abs(claimed.value - derived) > slack:
        right_one = f"{derived:.4g}{' s' if claimed.seconds else ''}"
        message = f"{left.strip()} is {right_one}."
        yield AuditFinding("product-mismatch", line, claimed.text.strip(), right_one, message)
    for used in times:
        yield from _check_step_time(line, used, step_times)


def _check_step_time(line: int, used: Term, stated: list[tuple[int, Term]]) -> Findings:
    """The time of a step that a sum reckons with, against the one that a line nearby gives."""
    near = [(number, term) for number, term in stated if abs(number - line) <= LINES_NEAR and number != line]
    differs = [(n, t) for n, t in near if abs(t.value - used.value) > t.unit / 2 + used.unit / 2]
    if near and len(differs) == len(near) and 0.5 < used.value / near[0][1].value < 2:
        place, term = near[0]
        message = f"line {place} gives {term.text.strip()}."
        yield AuditFinding("step-time-mismatch", line, used.text.strip(), term.text.strip(), message)


def _term(digits: str, unit: str | None, text: str) -> Term:
    plain = digits.replace(",", "")
    mantissa, _, exponent = plain.lower().partition("e")
    last = 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
    name = (unit or "").lower()
    scale = UNIT_SECONDS.get(name) or UNIT_SECONDS.get(name.removesuffix("s"))
    factor = scale or THOUSANDS.get(name, 1.0)
    return Term(float(plain) * factor, last * factor, scale is not None, text)
