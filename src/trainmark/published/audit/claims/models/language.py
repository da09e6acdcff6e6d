"""What a row says of the training of a language model: tokens, operations, batch and parallelism."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from trainmark.published.audit.claims.columns import is_per_device, seconds_per_unit, simplified
from trainmark.published.audit.claims.grid import Column, Figure, Grid, Row
from trainmark.published.audit.report.number import Number

TOKENS = re.compile(r"tokens?\b|\btoks?\b|\bt/s|\btps\b")
SEQUENCES = re.compile(r"samples?\b|seq(?:uence)?s?\b|sentences?\b|\bs/s")
SUFFIXES = {"k": 1e3, "m": 1e6, "b": 1e9, "t": 1e12}
PREFIXES = (("giga", 1e9), ("peta", 1e15), ("tera", 1e12), ("gflop", 1e9), ("pflop", 1e15), ("tflop", 1e12))
SIZE_IN_NAME = re.compile(r"(?<![\w.])(\d{1,4}(?:\.\d{1,3})?) ?([bm])(?![a-z0-9])", re.I)
SIZE_IN_WORDS = re.compile(r"(?<![\w.x×-])(\d{1,4}(?:\.\d{1,3})?) ?(b|m|billion|million)(?![a-z0-9])", re.I)
# Of these only some parameters take part in a token: their number says little about the operations.
SPARSE_MODEL = re.compile(
    r"\bmoe\b|mixtral|deepseek|\d+x\d+(?:\.\d+)?b|[-_ ]a\d+b|maverick|scout|llama-?4|experts?"
    r"|gpt[-_ ]?oss|dbrx|grok|kimi|olmoe|lora|adapter|peft",
    re.I,
)
# Families without experts: all parameters take part in every token.
DENSE_MODEL = re.compile(
    r"llama|gpt-?[23]|\bmpt\b|\bopt\b|bloom|falcon|pythia|mistral|gemma|\bphi\b|dense", re.I
)
QUANTITY_WORDS = re.compile(
    r"[\W_]|mfu|hfu|flops?|tera|giga|peta|tflops?|achieved|model|sec|per|gpu|chip|device|utili[sz]ation"
)


@dataclass(frozen=True)
class Quantity:
    """A figure in plain units, and the cell it comes from."""

    number: Number
    figure: Figure


def tokens_per_second(row: Row, per_device: bool) -> Quantity | None:
    return _rate(row, TOKENS, per_device)


def sequences_per_second(row: Row, per_device: bool = False) -> Quantity | None:
    return _rate(row, SEQUENCES, per_device)


def _rate(row: Row, unit: re.Pattern[str], per_device: bool) -> Quantity | None:
    """The one rate of a row in some unit, of all devices or of each."""
    figures = [
        figure
        for figure in row.of("throughput")
        if unit.search(simplified(figure.head)) and is_per_device(figure.head) is per_device
    ]
    if len(figures) != 1:
        return None
    number = plain(figures[0].number).scaled(1 / (seconds_per_unit(figures[0].head) or 1.0))
    return Quantity(number, figures[0])


def plain(number: Number) -> Number:
    """A number with its suffix worked in: `1.2M` is 1,200,000."""
    factor = SUFFIXES.get(number.rest.lower())
    return number.scaled(factor) if factor else number


def count(row: Row, role: str) -> Quantity | None:
    figures = row.of(role)
    if len(figures) != 1 or figures[0].number.value <= 0:
        return None
    return Quantity(plain(figures[0].number), figures[0])


def sequence_length(row: Row) -> Quantity | None:
    """The length of a sequence; `8k` is 8192."""
    figures = row.of("sequence_length")
    if len(figures) != 1 or figures[0].number.value <= 0:
        return None
    number = figures[0].number
    return Quantity(number.scaled(1024) if number.rest.lower() == "k" else number, figures[0])


def operations(row: Row, column: Column) -> Quantity | None:
    """Operations a second, by the prefix in the head; those of one device or of all, as the head says."""
    figure = row.in_column(column.index)
    head = simplified(column.head)
    factor = next((size for word, size in PREFIXES if word in head.replace(" ", "")), None)
    if figure is None or factor is None or figure.number.value <= 0:
        return None
    return Quantity(figure.number.scaled(factor), figure)


def share(row: Row, column: Column) -> Quantity | None:
    """A utilisation as a fraction of one."""
    figure = row.in_column(column.index)
    if figure is None or figure.number.value <= 0:
        return None
    in_percent = "%" in figure.number.rest or "%" in column.head or figure.number.value > 1.5
    return Quantity(figure.number.scaled(0.01) if in_percent else figure.number, figure)


def parameters(grid: Grid, row: Row) -> Number | None:
    """The parameters of a dense model: from its column, its name in the row, or the words above."""
    names = " ".join(cell.text for cell in row.cells)
    if SPARSE_MODEL.search(f"{names} {grid.words}"):
        return None
    if stated := count(row, "parameters"):
        number = stated.number
        head = simplified(stated.figure.head)
        in_billions = number.value < 2000 and (
            re.search(r"billion|\(b\)", head) or not stated.figure.number.rest
        )
        return number.scaled(1e9) if in_billions else number
    for texts in (
        [cell.text for cell in row.cells],
        [grid.table.caption],
        list(reversed(grid.table.headings)),
    ):
        sizes = {match.group(0): match for text in texts for match in SIZE_IN_WORDS.finditer(text[:300])}
        if len(sizes) == 1:
            return _size(next(iter(sizes.values())))
        if sizes:
            return None
    return None


def is_known_dense(grid: Grid, row: Row) -> bool:
    """Whether the model is of a family that has no experts."""
    return bool(DENSE_MODEL.search(f"{' '.join(cell.text for cell in row.cells)} {grid.words}"))


def _size(match: re.Match[str]) -> Number:
    decimals = len(match[1].partition(".")[2])
    return Number(float(match[1]), decimals).scaled(SUFFIXES[match[2][0].lower()])


def paired(grid: Grid, column: Column, role: str) -> Column | None:
    """The column of another quantity that stands for the same thing: by its head, else the only one."""
    others = grid.with_role(role)
    if len(others) == 1 and len(grid.with_role(column.role or "")) == 1:
        return others[0]
    rest = QUANTITY_WORDS.sub("", column.head.lower())
    same = [other for other in others if QUANTITY_WORDS.sub("", other.head.lower()) == rest]
    return same[0] if len(same) == 1 else None


def data_parallel(row: Row) -> float | None:
    """Copies of the model: devices over what each copy is spread over; None where the row does not say."""
    if stated := count(row, "data_parallel"):
        return stated.number.value
    spread = [count(row, role) for role in ("tensor_parallel", "pipeline_parallel")]
    if not row.devices or not all(spread):
        return None
    context = count(row, "context_parallel")
    each = context.number.value if context else 1.0
    for one in spread:
        each *= one.number.value if one else 1.0
    return row.devices / each


def language_rows(grid: Grid) -> Iterator[Row]:
    """The rows of a table that speaks of tokens, operations or global batches."""
    roles = {column.role for column in grid.columns}
    if roles & {"mfu", "tflops", "global_batch", "global_batch_tokens", "sequence_length"} or TOKENS.search(
        " ".join(simplified(column.head) for column in grid.columns)
    ):
        yield from grid.rows
