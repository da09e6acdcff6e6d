"""Rows of a language model whose products do not multiply: tokens, sequences, batches and devices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from trainmark.published.audit.claims.grid import Grid, Row, all_grids
from trainmark.published.audit.claims.models.language import (
    Quantity,
    count,
    data_parallel,
    language_rows,
    sequence_length,
    sequences_per_second,
    tokens_per_second,
)
from trainmark.published.audit.finding import Finding, Severity
from trainmark.published.audit.report.number import Number
from trainmark.published.audit.report.report import Report

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


Identity = Callable[[Row], "Product | None"]


def check(report: Report) -> Iterator[Finding]:
    for grid in all_grids(report):
        for identity, is_certain in IDENTITIES:
            yield from _broken(report, grid, identity, is_certain)


def _broken(report: Report, grid: Grid, identity: Identity, is_certain: bool) -> Iterator[Finding]:
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
        yield Finding(
            "product-mismatch",
            Severity.ERROR,
            report.where(cell.line),
            claimed=f"{cell.text} ({product.claimed.figure.head})",
            derived=f"{product.value:,.6g}",
            message=f"{product.words} is {product.value:,.6g}.",
        )


def _tokens_of_devices(row: Row) -> Product | None:
    every, each = tokens_per_second(row, per_device=False), tokens_per_second(row, per_device=True)
    if not (every and each and row.devices):
        return None
    return Product(
        every, (each.number, exactly(row.devices)), f"{each.figure.cell.text} × {row.devices} devices"
    )


def _tokens_of_sequences(row: Row) -> Product | None:
    for per_device in (False, True):
        tokens, sequences = tokens_per_second(row, per_device), sequences_per_second(row, per_device)
        length = sequence_length(row)
        if tokens and sequences and length:
            words = f"{sequences.figure.cell.text} sequences/s × {length.figure.cell.text}"
            return Product(tokens, (sequences.number, exactly(length.number.value)), words)
    return None


def _batch_in_tokens(row: Row) -> Product | None:
    tokens, batch, length = (
        count(row, "global_batch_tokens"),
        count(row, "global_batch"),
        sequence_length(row),
    )
    if not (tokens and batch and length):
        return None
    words = f"{batch.figure.cell.text} × {length.figure.cell.text}"
    return Product(tokens, (exactly(batch.number.value), exactly(length.number.value)), words)


def _global_batch(row: Row) -> Product | None:
    """Micro batch × accumulation × copies of the model, where the row says how it is spread."""
    whole, micro, steps = count(row, "global_batch"), count(row, "micro_batch"), count(row, "accumulation")
    copies = data_parallel(row)
    if not (whole and micro and steps and copies) or copies != int(copies):
        return None
    words = f"{micro.figure.cell.text} × {steps.figure.cell.text} accumulated × {copies:g} copies"
    return Product(whole, tuple(map(exactly, (micro.number.value, steps.number.value, copies))), words)


def _unsharded_batch(row: Row) -> Product | None:
    """The same where no column speaks of tensors or pipelines: every device may be a copy."""
    if row.of("tensor_parallel") or row.of("pipeline_parallel") or row.of("data_parallel") or not row.devices:
        return None
    whole, micro, steps = count(row, "global_batch"), count(row, "micro_batch"), count(row, "accumulation")
    if not (whole and micro and steps):
        return None
    words = f"{micro.figure.cell.text} × {steps.figure.cell.text} accumulated × {row.devices} devices"
    return Product(whole, tuple(map(exactly, (micro.number.value, steps.number.value, row.devices))), words)


def _spread(row: Row) -> Product | None:
    """Tensor × pipeline × context × data parallelism are the devices."""
    roles = ("tensor_parallel", "pipeline_parallel", "data_parallel")
    parts = [count(row, role) for role in roles]
    devices = count(row, "devices")
    if not devices or not all(parts):
        return None
    context = count(row, "context_parallel")
    factors = [part for part in (*parts, context) if part]
    words = " × ".join(part.figure.cell.text for part in factors)
    return Product(devices, tuple(exactly(part.number.value) for part in factors), words)


def _tokens_of_steps(row: Row) -> Product | None:
    """Tokens a second × seconds a step are the tokens of a batch."""
    every, length = tokens_per_second(row, per_device=False), sequence_length(row)
    times, batch = row.of("step_time"), count(row, "global_batch")
    tokens = count(row, "global_batch_tokens")
    if not every or len(times) != 1 or times[0].number.rest != "s":
        return None
    if tokens:
        return Product(tokens, (every.number, times[0].number), "tokens/s × time a step", SAME_CLOCK)
    if not (batch and length):
        return None
    whole = Quantity(batch.number.scaled(length.number.value), batch.figure)
    return Product(whole, (every.number, times[0].number), "tokens/s × time a step in tokens", SAME_CLOCK)


def exactly(value: float) -> Number:
    """A count: it was not rounded."""
    return Number(float(value), 0, step=0.0)


IDENTITIES: tuple[tuple[Identity, bool], ...] = (
    (_tokens_of_devices, True),
    (_tokens_of_sequences, True),
    (_batch_in_tokens, True),
    (_global_batch, True),
    (_spread, True),
    (_unsharded_batch, False),
    (_tokens_of_steps, False),
)
