"""What the ledger's plots show: throughput of one device, a row for each device, precision and length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from trainmark.logs.ledger.entry import LedgerEntry, LedgerRow, device_family
from trainmark.report.chart import standalone
from trainmark.report.chart.axis import linear, rows
from trainmark.report.chart.model import Chart, Dots, Figure, Plot, shape, tone
from trainmark.report.chart.model import Panel as ChartPanel
from trainmark.report.format import number
from trainmark.report.format.words import words

ROW, NARROW_ROW = 44, 30
MOST_WIDE_ROWS = 12
# A workload of which there is less is no comparison: hundreds of such would only hide the others.
FEWEST_DRAWN = 3


@dataclass(frozen=True)
class Panel:
    """One workload: its rows, and in each the entries that have a throughput per device."""

    workload: str
    unit: str
    rows: list[tuple[str, list[LedgerEntry]]]


def panels(entries: Sequence[LedgerEntry]) -> list[Panel]:
    drawn = sorted((entry for entry in entries if entry.row.per_device and entry.row.device), key=_order)
    all_panels = [
        Panel(workload, unit, [(label, list(row)) for label, row in groupby(group, key=_label)])
        for (workload, unit), group in groupby(drawn, key=lambda e: (e.row.workload, e.row.unit))
    ]
    many = [panel for panel in all_panels if sum(len(row) for _, row in panel.rows) >= FEWEST_DRAWN]
    return sorted(many or all_panels, key=lambda panel: -len(panel.rows))


def frameworks(entries: Sequence[LedgerEntry]) -> list[str]:
    """Every framework, in the order of its colour."""
    return sorted({entry.row.framework for entry in entries})


def lane(framework: int, of: int) -> float:
    """Where in its row, -0.3 to 0.3, a framework's dots lie, so that none hides another's."""
    return 0.6 * (framework + 0.5) / of - 0.3


def plot(entries: Sequence[LedgerEntry]) -> Plot | None:
    """A figure for each workload; a dot refers to its row of the page's table."""
    shown, known = panels(entries), frameworks(entries)
    place = {id(entry): index for index, entry in enumerate(entries)}
    figures = [Figure(panel.workload, {"": _chart(panel, known, place)}) for panel in shown]
    return Plot("ledger", figures, known) if shown else None


def svg(entries: Sequence[LedgerEntry]) -> str:
    """All workloads below each other as one file, each dot with its text."""
    known = frameworks(entries)
    charts = [(panel.workload, _chart(panel, known)) for panel in panels(entries)]
    return standalone.render(charts, [(tone(i), name) for i, name in enumerate(known)], words("en"))


def tooltip(entry: LedgerEntry) -> str:
    """`oneflow 0.2.0, 1n8g, batch 256: 1,329 images/s a device (dlperf-v1)`."""
    row = entry.row
    parts = (
        " ".join(filter(None, (row.framework, row.framework_version))),
        row.topology,
        _length(row),
        f"batch {row.batch_per_device}" if row.batch_per_device else None,
        row.layout,
        None if row.compiler in (None, "none") else row.compiler,
        row.data,
        row.note,
    )
    config = ", ".join(filter(None, parts))
    return f"{config}: {number.throughput(row.per_device)} {row.unit} a device ({entry.source})"


def _chart(panel: Panel, known: Sequence[str], place: dict[int, int] | None = None) -> Chart:
    """`place` has the number of each entry's row, by identity; without it the dots carry their texts."""
    points = [(row, entry) for row, (_, entries) in enumerate(panel.rows) for entry in entries]
    present = frameworks([entry for _, entry in points])
    marks = []
    for framework in present:
        own = [(row, entry) for row, entry in points if entry.row.framework == framework]
        index = known.index(framework)
        marks.append(
            Dots(
                tone(index),
                str(index),
                opacity=0.8,
                x=[entry.row.per_device for _, entry in own],
                y=[row + lane(present.index(framework), len(present)) for row, _ in own],
                shape=shape(index),
                texts=() if place else [tooltip(entry) for _, entry in own],
                references=[place[id(entry)] for _, entry in own] if place else (),
            )
        )
    across = linear((entry.row.per_device for _, entry in points), f"{panel.unit} a device", most=9)
    height = len(panel.rows) * (ROW if len(panel.rows) <= MOST_WIDE_ROWS else NARROW_ROW)
    return Chart(across, [ChartPanel(rows([label for label, _ in panel.rows]), marks, height)])


def _label(entry: LedgerEntry) -> str:
    return " · ".join(
        filter(None, (device_family(entry.row.device or ""), entry.row.precision, _length(entry.row)))
    )


def _length(row: LedgerRow) -> str | None:
    """Rows of one model at several lengths are not the same work."""
    return f"length {row.sequence_length}" if row.sequence_length else None


def _order(entry: LedgerEntry) -> tuple[str, str, str, str, int, float]:
    row = entry.row
    work = (
        row.workload,
        row.unit,
        device_family(row.device or ""),
        row.precision or "",
        row.sequence_length or 0,
    )
    return (*work, row.per_device or 0.0)
