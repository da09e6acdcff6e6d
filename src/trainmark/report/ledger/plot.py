"""What the ledger's plots show: throughput of one device, a row for each device and precision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from trainmark.published.ledger.device import family
from trainmark.published.ledger.entry import Entry
from trainmark.report.format import number
from trainmark.report.plots.plot import Figure, Plot, name, short, symbol, tone

ROW, NARROW_ROW = 44, 26
MOST_WIDE_ROWS = 12
FRAME = 76
# A workload of which there is less is no comparison: hundreds of such would only hide the others.
FEWEST_DRAWN = 3


@dataclass(frozen=True)
class Panel:
    """One workload: its rows, and in each the entries that have a throughput per device."""

    workload: str
    unit: str
    rows: list[tuple[str, list[Entry]]]


def panels(entries: Sequence[Entry]) -> list[Panel]:
    drawn = sorted((entry for entry in entries if entry.row.per_device and entry.row.device), key=_order)
    all_panels = [
        Panel(workload, unit, [(label, list(row)) for label, row in groupby(group, key=_label)])
        for (workload, unit), group in groupby(drawn, key=lambda e: (e.row.workload, e.row.unit))
    ]
    many = [panel for panel in all_panels if sum(len(row) for _, row in panel.rows) >= FEWEST_DRAWN]
    return sorted(many or all_panels, key=lambda panel: -len(panel.rows))


def frameworks(entries: Sequence[Entry]) -> list[str]:
    """Every framework, in the order of its colour."""
    return sorted({entry.row.framework for entry in entries})


def lane(framework: int, of: int) -> float:
    """Where in its row, -0.3 to 0.3, a framework's dots lie, so that none hides another's."""
    return 0.6 * (framework + 0.5) / of - 0.3


def plot(entries: Sequence[Entry]) -> Plot | None:
    shown = panels(entries)
    if not shown:
        return None
    height = max(map(_height, shown))
    known = frameworks(entries)
    return Plot("ledger", height, [_figure(panel, known) for panel in shown], known)


def tooltip(entry: Entry) -> str:
    """`oneflow 0.2.0, 1n8g, batch 256: 1,329 images/s a device (dlperf-v1)`."""
    row = entry.row
    parts = (
        " ".join(filter(None, (row.framework, row.framework_version))),
        row.topology,
        f"batch {row.batch_per_device}" if row.batch_per_device else None,
        row.layout,
        None if row.compiler in (None, "none") else row.compiler,
        row.data,
        row.note,
    )
    config = ", ".join(filter(None, parts))
    return f"{config}: {number.throughput(row.per_device)} {row.unit} a device ({entry.source})"


def _height(panel: Panel) -> int:
    return FRAME + len(panel.rows) * (ROW if len(panel.rows) <= MOST_WIDE_ROWS else NARROW_ROW)


def _figure(panel: Panel, known: list[str]) -> Figure:
    points = [(row, entry) for row, (_, entries) in enumerate(panel.rows) for entry in entries]
    present = frameworks([entry for _, entry in points])
    data = []
    for index, framework in enumerate(known):
        own = [(row, entry) for row, entry in points if entry.row.framework == framework]
        if not own:
            continue
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "legendgroup": framework,
                "x": [short(entry.row.per_device) for _, entry in own],
                "y": [short(row + lane(present.index(framework), len(present))) for row, _ in own],
                "text": [name(tooltip(entry), longest=160) for _, entry in own],
                "marker": {"color": tone(index), "symbol": symbol(index), "size": 8, "opacity": 0.8},
                "hovertemplate": "%{text}<extra></extra>",
            }
        )
    layout = {
        "height": _height(panel),
        "xaxis": {"title": {"text": f"{panel.unit} a device"}, "rangemode": "tozero"},
        "yaxis": {
            "tickmode": "array",
            "tickvals": list(range(len(panel.rows))),
            "ticktext": [name(label) for label, _ in panel.rows],
            "range": [len(panel.rows) - 0.5, -0.5],
            "showgrid": False,
            "fixedrange": True,
        },
        "hovermode": "closest",
    }
    return Figure(panel.workload, data, layout, {})


def _label(entry: Entry) -> str:
    return " · ".join(filter(None, (family(entry.row.device or ""), entry.row.precision)))


def _order(entry: Entry) -> tuple[str, str, str, float]:
    row = entry.row
    return (row.workload, row.unit, _label(entry), row.per_device or 0.0)
