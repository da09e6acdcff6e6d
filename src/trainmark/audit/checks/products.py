"""Products that do not multiply, in rows and in sentences.

Rows of a language model: tokens, sequences, batches and devices. Sentences: a product that the text works out
wrongly, or with a time of a step that another line gives otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import prod

from trainmark.audit.finding import AuditFinding, FindingSeverity
from trainmark.audit.grid import GridRow, TableGrid, all_grids
from trainmark.audit.models import (
    Quantity,
    count_in,
    data_parallel,
    language_rows,
    sequence_length,
    sequences_per_second,
    tokens_per_second,
)
from trainmark.audit.number import Number, normalize_text
from trainmark.audit.report import Report

# Throughput and time a step are averaged apart.
SAME_CLOCK = 0.05
ROUNDING = 0.005
# An identity that the table does not spell out holds where it holds in so many rows for each that breaks it.
AGREEING_FOR_EACH_WRONG = 3


@dataclass(frozen=True)
class Product:
    """A figure, the factors that make it, and what they are called."""

    claimed: Quantity
    factors: tuple[Number, ...]
    words: str
    tolerance: float = ROUNDING

    def holds(self) -> bool:
        low = high = 1.0
        for factor in self.factors:
            low, high = low * max(factor.low, 0.0), high * factor.high
        number = self.claimed.number
        slack = 1.5 * number.unit + self.tolerance * number.value
        return low <= number.value + slack and number.value - slack <= high

    @property
    def value(self) -> float:
        value = 1.0
        for factor in self.factors:
            value *= factor.value
        return value


Identity = Callable[[GridRow], "Product | None"]


def check_row_products(report: Report) -> Iterator[AuditFinding]:
    for grid in all_grids(report):
        for identity, is_certain in IDENTITIES:
            yield from _broken_products(report, grid, identity, is_certain)


def _broken_products(
    report: Report, grid: TableGrid, identity: Identity, is_certain: bool
) -> Iterator[AuditFinding]:
    products = [product for row in language_rows(grid) if (product := identity(row))]
    wrong = [product for product in products if not product.holds()]
    right = len(products) - len(wrong)
    if not is_certain and len(wrong) * AGREEING_FOR_EACH_WRONG > right:
        return
    # Where no row holds, the heads mean something else.
    if len(wrong) > 2 and not right:
        return
    for product in wrong:
        cell = product.claimed.figure.cell
        yield AuditFinding(
            "product-mismatch",
            FindingSeverity.ERROR,
            report.where(cell.line),
            claimed=f"{cell.text} ({product.claimed.figure.head})",
            derived=f"{product.value:,.6g}",
            message=f"{product.words} is {product.value:,.6g}.",
        )


def _tokens_of_devices(row: GridRow) -> Product | None:
    every, each = tokens_per_second(row, per_device=False), tokens_per_second(row, per_device=True)
    if not (every and each and row.devices):
        return None
    return Product(
        every, (each.number, exact_number(row.devices)), f"{each.figure.cell.text} × {row.devices} devices"
    )


def _tokens_of_sequences(row: GridRow) -> Product | None:
    for per_device in (False, True):
        tokens, sequences = tokens_per_second(row, per_device), sequences_per_second(row, per_device)
        length = sequence_length(row)
        if tokens and sequences and length:
            words = f"{sequences.figure.cell.text} sequences/s × {length.figure.cell.text}"
            return Product(tokens, (sequences.number, exact_number(length.number.value)), words)
    return None


def _batch_in_tokens(row: GridRow) -> Product | None:
    tokens, batch, length = (
        count_in(row, "global_batch_tokens"),
        count_in(row, "global_batch"),
        sequence_length(row),
    )
    if not (tokens and batch and length):
        return None
    words = f"{batch.figure.cell.text} × {length.figure.cell.text}"
    return Product(tokens, (exact_number(batch.number.value), exact_number(length.number.value)), words)


def _global_batch(row: GridRow) -> Product | None:
    """Micro batch × accumulation × copies of the model, where the row says how it is spread."""
    whole, micro, steps = (
        count_in(row, "global_batch"),
        count_in(row, "micro_batch"),
        count_in(row, "accumulation"),
    )
    copies = data_parallel(row)
    if not (whole and micro and steps and copies) or copies != int(copies):
        return None
    words = f"{micro.figure.cell.text} × {steps.figure.cell.text} accumulated × {copies:g} copies"
    return Product(whole, tuple(map(exact_number, (micro.number.value, steps.number.value, copies))), words)


def _unsharded_batch(row: GridRow) -> Product | None:
    """The same where no column speaks of tensors or pipelines: every device may be a copy."""
    if row.of("tensor_parallel") or row.of("pipeline_parallel") or row.of("data_parallel") or not row.devices:
        return None
    whole, micro, steps = (
        count_in(row, "global_batch"),
        count_in(row, "micro_batch"),
        count_in(row, "accumulation"),
    )
    if not (whole and micro and steps):
        return None
    words = f"{micro.figure.cell.text} × {steps.figure.cell.text} accumulated × {row.devices} devices"
    return Product(
        whole, tuple(map(exact_number, (micro.number.value, steps.number.value, row.devices))), words
    )


def _parallelism(row: GridRow) -> Product | None:
    """Tensor × pipeline × context × data parallelism are the devices."""
    roles = ("tensor_parallel", "pipeline_parallel", "data_parallel")
    parts = [count_in(row, role) for role in roles]
    devices = count_in(row, "devices")
    if not devices or not all(parts):
        return None
    context = count_in(row, "context_parallel")
    factors = [part for part in (*parts, context) if part]
    words = " × ".join(part.figure.cell.text for part in factors)
    return Product(devices, tuple(exact_number(part.number.value) for part in factors), words)


def _tokens_of_steps(row: GridRow) -> Product | None:
    """Tokens a second × seconds a step are the tokens of a batch."""
    every, length = tokens_per_second(row, per_device=False), sequence_length(row)
    times, batch = row.of("step_time"), count_in(row, "global_batch")
    tokens = count_in(row, "global_batch_tokens")
    if not every or len(times) != 1 or times[0].number.rest != "s":
        return None
    if tokens:
        return Product(tokens, (every.number, times[0].number), "tokens/s × time a step", SAME_CLOCK)
    if not (batch and length):
        return None
    whole = Quantity(batch.number.scaled(length.number.value), batch.figure)
    return Product(whole, (every.number, times[0].number), "tokens/s × time a step in tokens", SAME_CLOCK)


def exact_number(value: float) -> Number:
    """A count: it was not rounded."""
    return Number(float(value), 0, step=0.0)


IDENTITIES: tuple[tuple[Identity, bool], ...] = (
    (_tokens_of_devices, True),
    (_tokens_of_sequences, True),
    (_batch_in_tokens, True),
    (_global_batch, True),
    (_parallelism, True),
    (_unsharded_batch, False),
    (_tokens_of_steps, False),
)


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


def check_text_products(report: Report) -> Iterator[AuditFinding]:
    lines = sorted(_text_lines(report))
    step_times = [
        (number, _term(match[1], match[2], match[0]))
        for number, text in lines
        for match in STEP_TIME.finditer(text)
    ]
    for number, text in lines:
        for match in PRODUCT.finditer(text):
            if not PART_OF_MORE.search(text[: match.start()]):
                yield from _check_product(report, number, match[0], step_times)


def _text_lines(report: Report) -> Iterator[tuple[int, str]]:
    for passage in (*report.headings, *report.prose):
        if len(passage.text) <= LONGEST_LINE:
            yield passage.line, passage.text
    for block in report.code:
        for number, line in block.numbered():
            if len(line) <= LONGEST_LINE:
                yield number, normalize_text(line)


def _check_product(
    report: Report, line: int, text: str, step_times: list[tuple[int, Term]]
) -> Iterator[AuditFinding]:
    left, right = EQUALS.split(text)
    factors = [_term(match[1], match[2], match[0]) for match in TERM.finditer(left)]
    (claimed,) = [_term(match[1], match[2], match[0]) for match in TERM.finditer(right)][:1]
    times = [factor for factor in factors if factor.seconds]
    if len(times) > 1 or bool(times) != claimed.seconds:
        return
    derived = prod(factor.value for factor in factors)
    slack = 1.5 * claimed.unit + TEXT_TOLERANCE * derived
    if abs(claimed.value - derived) > slack:
        yield AuditFinding(
            "product-mismatch",
            FindingSeverity.ERROR,
            report.where(line),
            claimed=claimed.text.strip(),
            derived=f"{derived:.4g}{' s' if claimed.seconds else ''}",
            message=f"{left.strip()} is {derived:.4g}{' s' if claimed.seconds else ''}.",
        )
    for used in times:
        yield from _check_step_time(report, line, used, left, step_times)


def _check_step_time(
    report: Report, line: int, used: Term, text: str, stated: list[tuple[int, Term]]
) -> Iterator[AuditFinding]:
    """The time of a step that a sum reckons with, against the one that a line nearby gives."""
    near = [(number, term) for number, term in stated if abs(number - line) <= LINES_NEAR and number != line]
    differs = [(n, t) for n, t in near if abs(t.value - used.value) > t.unit / 2 + used.unit / 2]
    if near and len(differs) == len(near) and 0.5 < used.value / near[0][1].value < 2:
        place, term = near[0]
        yield AuditFinding(
            "step-time-mismatch",
            FindingSeverity.ERROR,
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
    scale = UNIT_SECONDS.get(name) or UNIT_SECONDS.get(name.removesuffix("s"))
    factor = scale or THOUSANDS.get(name, 1.0)
    return Term(float(plain) * factor, last * factor, scale is not None, text)
