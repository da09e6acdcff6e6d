"""The share of the speed of light as plain cells, for every layout: one row a result that has a reference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from trainmark.measure import reference_rate
from trainmark.measure.figure import Result
from trainmark.measure.reference_rate import HALF, ReferenceRate
from trainmark.pages import label, number
from trainmark.report.document import Document
from trainmark.report.format.table import Table
from trainmark.report.sections.finish import Cell


@dataclass(frozen=True)
class LightRow:
    """One result, under the name of its case, and what it is held against."""

    name: str
    result: Result
    reference: ReferenceRate
    share: float


Column = Callable[[LightRow], Cell]
COLUMNS: dict[str, Column] = {
    "case": lambda row: Cell(row.name),
    "rate_a_device": lambda row: Cell(number.throughput(row.result.throughput / row.result.key.devices)),
    "light_share": lambda row: Cell(number.percent(row.share)),
    "mfu": lambda row: Cell(number.percent(row.result.utilisation.value if row.result.utilisation else None)),
    "memory_share": lambda row: Cell(number.percent(row.result.memory_share)),
    "per_joule": lambda row: Cell(number.significant(row.result.samples_per_joule, 3)),
}
# Columns that a run may have nothing to say in.
OPTIONAL = frozenset({"mfu", "memory_share", "per_joule"})


def light_rows(document: Document) -> tuple[LightRow, ...]:
    """Those that train the same batch on as many devices stand together, the fastest first."""
    names = label.distinguishing(result.key for result in document.results)
    rows = []
    for result in document.results:
        reference, share = (
            reference_rate.reference_rate_of(result, document.light),
            reference_rate.share(result, document.light),
        )
        if reference is not None and share is not None:
            name = f"{label.series(result.key, names)} {result.key.topology}"
            rows.append(LightRow(name, result, reference, share))
    return tuple(sorted(rows, key=_place))


def _place(row: LightRow) -> tuple[int, int, float]:
    key = row.result.key
    return key.devices, key.batch_per_device or 0, -row.share


def columns(rows: Sequence[LightRow]) -> dict[str, Column]:
    """The columns in which some row has something to say, in the order of the page."""
    return {
        name: column
        for name, column in COLUMNS.items()
        if name not in OPTIONAL or any(column(row).text != number.MISSING for row in rows)
    }


def header(name: str, rows: Sequence[LightRow], t: dict[str, str]) -> str:
    return t[name].format(unit=rows[0].result.unit)


def table(rows: Sequence[LightRow], t: dict[str, str]) -> Table:
    shown = columns(rows)
    return Table(
        [header(name, rows, t) for name in shown],
        [[column(row).line for column in shown.values()] for row in rows],
        frozenset(range(1, len(shown))),
    )


def note(rows: Sequence[LightRow], t: dict[str, str]) -> str:
    """What the reference rates are, in one sentence; only those that some row is held against."""
    used = dict.fromkeys((row.reference, row.result.unit) for row in rows)
    references = t["light_join"].join(_reference_text(reference, unit, t) for reference, unit in used)
    return t["light_note"].format(references=references)


def _reference_text(reference: ReferenceRate, unit: str, t: dict[str, str]) -> str:
    return t["light_reference"].format(
        rate=number.throughput(reference.rate),
        unit=label.rate_unit(unit),
        device=reference.device,
        workload=reference.workload,
        axes=label.axes(reference.workload, reference.axes),
        precision=t["light_half"] if reference.precision == HALF else reference.precision,
        batch=reference.batch,
        version=reference.version,
        date=reference.taken.partition("T")[0],
    )
