"""The ledger of published results: its rows, what is wrong with them, one device's throughput drawn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from trainmark.base.text import one_line
from trainmark.logs.ledger.entry import LedgerEntry, LedgerRow, Publication, device_family
from trainmark.logs.ledger.standing import SHORT_UNITS
from trainmark.pages import number
from trainmark.view.blocks import (
    Answer,
    Block,
    Chart,
    Facts,
    Items,
    LargeTable,
    Page,
    Section,
    Span,
    Table,
    Text,
    only,
    without,
)
from trainmark.view.chart import model
from trainmark.view.chart.axis import linear, rows
from trainmark.view.chart.model import Dots, Figure, Plot, shape, tone
from trainmark.view.chart.svg import sheet
from trainmark.view.message import _

ROW, NARROW_ROW = 44, 30
MOST_WIDE_ROWS = 12
# A workload of which there is less is no comparison: hundreds of such would only hide the others.
FEWEST_DRAWN = 3
HEADER = (
    *(_("source"), _("date"), _("workload"), _("framework"), _("version"), _("device"), _("precision")),
    *(_("batch"), _("topology"), _("throughput"), "", _("speedup"), _("memory (MB)"), _("time to train (s)")),
    *("top-1", _("config"), _("errata")),
)
RIGHT = frozenset({7, 9, 11, 12, 13, 14})
LARGE_HEADER = (
    *(_("source"), _("date"), _("workload"), _("framework"), _("device"), _("precision"), _("batch")),
    *(_("topology"), _("throughput"), _("time to train (s)"), _("remarks")),
)
LARGE_RIGHT = frozenset({6, 8, 9})

Cell = str | tuple[str, str]


def ledger_page(entries: Sequence[LedgerEntry]) -> Page:
    return Page(
        _("Published training results"),
        (only("html", *_drawn(entries)), without("html", *_listed(entries))),
    )


def _drawn(entries: Sequence[LedgerEntry]) -> Iterator[Block]:
    origins = {entry.source: entry.origin for entry in entries}
    yield Answer(
        (
            _(
                "What others measured and published, each row with its source and with what is known to be"
                " wrong with it."
            ),
            _("{rows} rows from {sources} sources.", rows=len(entries), sources=len(origins)),
        )
    )
    if drawn := plot(entries):
        note = _(
            "Throughput of all devices divided by their number; each dot is a row of the table. Workloads"
            " with fewer than {fewest} such rows are in the table alone.",
            fewest=FEWEST_DRAWN,
        )
        chart = Chart(drawn, note, _("Workload"), _("Frameworks"), at_first=len(drawn.legend))
        yield Section(_("Throughput of one device"), [chart])
    yield Section(_("What holds for these figures"), [Items(CONDITIONS)])
    without_script = (
        _("The rows need JavaScript; this command lists them in a terminal:"),
        Span("trainmark ledger", "code"),
    )
    example = _("Filter: h100 llama 2024")
    table = LargeTable("ledger", LARGE_HEADER, payload(entries), LARGE_RIGHT, example, without_script)
    yield Section(_("Rows"), [table], look="wide")
    yield Section(_("Sources"), [Facts([(source, _origin(origin)) for source, origin in origins.items()])])


CONDITIONS = (
    _(
        "Every figure is as its source printed it; nothing was measured again. Sources differ in what they"
        " time: some leave out warm-up, data loading or validation, and few say so."
    ),
    _("Hardly any source gives an interval. Differences of a few per cent between two rows are no ranking."),
    _(
        "Throughput of one device is that of all devices divided by their number; rows that do not say how"
        " many devices they used are not drawn."
    ),
    _("A row with an erratum is shown as published; the erratum says what contradicts it."),
)


def _origin(origin: Publication) -> Text:
    about = (origin.date, origin.confidence, origin.page, origin.commit)
    return origin.title, Span(" · ".join(str(part) for part in about if part), "sub")


def _listed(entries: Sequence[LedgerEntry]) -> Iterator[Block]:
    """Yield the table, then each erratum that it refers to."""
    errata = list(dict.fromkeys((entry.source, text) for entry in entries for text in entry.errata))
    yield Table(HEADER, [_cells(entry, errata) for entry in entries], RIGHT)
    yield Items([f"[{index}] {source}: {text}" for index, (source, text) in enumerate(errata, 1)])


def _cells(entry: LedgerEntry, errata: list[tuple[str, str]]) -> list[Text]:
    row = entry.row
    compiler = None if row.compiler == "none" else row.compiler
    length = f"length {row.sequence_length}" if row.sequence_length else None
    padding = "padding skipped" if row.padding == "skipped" else None
    accumulated = f"×{row.accumulate} accumulated" if (row.accumulate or 1) > 1 else None
    config = (length, padding, accumulated, row.layout, compiler, row.data, row.note)
    return [
        entry.source,
        entry.date,
        row.workload,
        row.framework,
        row.framework_version,
        row.device,
        "/".join(filter(None, (row.precision, row.loss_scale))),
        row.batch_per_device,
        row.topology,
        _number(row.throughput),
        SHORT_UNITS[row.unit] if row.throughput else None,
        _given(row.speedup),
        _number(row.memory_mb),
        _number(row.time_to_train_s),
        _given(row.top1),
        ", ".join(filter(None, config)),
        " ".join(f"[{errata.index((entry.source, text)) + 1}]" for text in entry.errata),
    ]


def _number(value: float | None) -> str | None:
    """All the digits that the source printed."""
    return None if value is None else f"{value:,}".removesuffix(".0")


def payload(entries: Sequence[LedgerEntry]) -> dict[str, Any]:
    """Every distinct cell of a column once; a row is their numbers, and those of its errata as a list.

    That is a third of the size that the cells have when each row holds its own.
    """
    errata = list(dict.fromkeys(text for entry in entries for text in entry.errata))
    place = {text: index for index, text in enumerate(errata)}
    columns: list[dict[Cell, int]] = [{} for _column in LARGE_HEADER]
    rows: list[list[Any]] = []
    for entry in entries:
        cells = zip(columns, _large_cells(entry), strict=True)
        numbers: list[Any] = [column.setdefault(cell, len(column)) for column, cell in cells]
        rows.append([*numbers, [place[text] for text in entry.errata]] if entry.errata else numbers)
    return {
        "columns": [list(column) for column in columns],
        "errata": [one_line(text) for text in errata],
        "rows": rows,
    }


def _large_cells(entry: LedgerEntry) -> list[Cell]:
    """A cell is a text, or a text with a smaller one behind it."""
    row = entry.row
    throughput = number.throughput(row.throughput) if row.throughput else ""
    return [
        one_line(entry.source),
        entry.date or "",
        _given(row.workload),
        (_given(row.framework), _given(row.framework_version)),
        _given(row.device),
        (_given(row.precision), _given(row.loss_scale)),
        _given(row.batch_per_device),
        row.topology or (f"{row.devices} devices" if row.devices else ""),
        (throughput, row.unit if throughput else ""),
        _given(row.time_to_train_s),
        (_given(row.note), _remarks(row)),
    ]


def _remarks(row: LedgerRow) -> str:
    """What has no column of its own."""
    parts = (
        row.submitter,
        row.system,
        f"{row.sequence_length} tokens" if row.sequence_length else None,
        "padding skipped" if row.padding == "skipped" else None,
        f"{row.accumulate} micro-batches" if (row.accumulate or 1) > 1 else None,
        row.optimizer,
        row.sharding,
        row.layout,
        None if row.compiler == "none" else row.compiler,
        f"speed-up {row.speedup}" if row.speedup else None,
        f"MFU {row.mfu} %" if row.mfu else None,
        f"{row.tflops_per_device} TFLOP/s a device" if row.tflops_per_device else None,
        f"top-1 {row.top1}" if row.top1 else None,
    )
    return one_line(", ".join(filter(None, parts)))


def _given(value: object) -> str:
    return "" if value is None else one_line(str(value))


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
    return sheet(charts, [(tone(i), name) for i, name in enumerate(known)])


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


def _chart(panel: Panel, known: Sequence[str], place: dict[int, int] | None = None) -> model.Chart:
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
    return model.Chart(across, [model.Panel(rows([label for label, _ in panel.rows]), marks, height)])


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
