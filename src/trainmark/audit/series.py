"""Scaling series out of tables: rows of one configuration that differ in their number of devices."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from trainmark.audit.columns import is_per_device, role_of, seconds_per_unit, simplified
from trainmark.audit.number import Number, normal, parse_number, uses_decimal_comma
from trainmark.audit.report import Report
from trainmark.audit.tables import Cell, Table
from trainmark.audit.topology import devices_in, nodes_in

MEASURED = {
    "throughput", "speedup", "efficiency", "time_to_train", "accuracy", "memory", "step_time", "epochs",
    "ratio_of_columns",
}  # fmt: skip
COUNTS = {"nodes", "devices", "devices_per_node", "topology"}
SPEAKS_OF_RATE = re.compile(r"(images?|imgs?|samples?) ?(/|per) ?(s|sec|second)\b|吞吐|throughput", re.I)


@dataclass(frozen=True)
class Figure:
    """A number in a cell, with the head of its column."""

    number: Number
    cell: Cell
    head: str
    column: int


@dataclass(frozen=True)
class Row:
    """One row read: how many devices, and its figures by role."""

    line: int
    devices: int | None
    nodes: int | None
    key: tuple[str, ...]
    batch: int | None
    cells: tuple[Cell, ...]
    figures: dict[str, tuple[Figure, ...]]

    def of(self, role: str) -> tuple[Figure, ...]:
        return self.figures.get(role, ())

    def in_column(self, column: int) -> Figure | None:
        every = (figure for figures in self.figures.values() for figure in figures)
        return next((figure for figure in every if figure.column == column), None)


@dataclass(frozen=True)
class Series:
    """Rows of one configuration, fewest devices first as they stand; `start` is the row of the fewest."""

    table: Table
    rows: tuple[Row, ...]

    @property
    def start(self) -> Row | None:
        """The row that speed-ups are measured from: one device, or else the row that says 1."""
        counted = [row for row in self.rows if row.devices is not None]
        if counted:
            least = min(counted, key=lambda row: row.devices or 0)
            return least if len({row.devices for row in counted}) == len(counted) else None
        ones = [row for row in self.rows for figure in row.of("speedup") if figure.number.value == 1]
        return ones[0] if len(ones) == 1 else None


def all_series(report: Report) -> list[Series]:
    return report.kept("series", lambda whole: (one for table in whole.tables for one in series_of(table)))


def series_of(table: Table) -> list[Series]:
    """The rows of a table by what they have in common; a row of fewest devices begins a series anew."""
    roles = _roles(table)
    if not {"throughput", "speedup", "time_to_train"} & set(roles):
        return []
    comma = uses_decimal_comma([cell.text for row in table.rows for cell in row])
    keys = _key_columns(table, roles)
    groups: dict[tuple[str, ...], list[Row]] = {}
    for cells in table.rows:
        row = _row(table, roles, keys, cells, comma)
        groups.setdefault(row.key, []).append(row)
    return [Series(table, tuple(part)) for rows in groups.values() for part in _parted(rows)]


def _roles(table: Table) -> list[str | None]:
    """The role of each column; unnamed numbers are throughputs where the caption says so."""
    roles = [role_of(cell.text) for cell in table.head]
    if roles and roles[0] is None and any(devices_in(row[0].text) for row in table.rows):
        roles[0] = "topology"
    counts = {"devices", "devices_per_node", "topology"} & set(roles)
    around = " ".join((table.caption, *table.headings[-1:], table.head[0].text))
    if counts and not MEASURED & set(roles) and SPEAKS_OF_RATE.search(normal(around)):
        numeric = [_is_numeric(table, index) for index in range(len(roles))]
        roles = [
            "throughput" if found and role not in COUNTS else role
            for role, found in zip(roles, numeric, strict=True)
        ]
    return _with_devices_per_node(table, roles)


def _with_devices_per_node(table: Table, roles: list[str | None]) -> list[str | None]:
    """`gpus` beside `nodes` counts those of one node where more nodes do not raise it."""
    if "nodes" not in roles or "devices" not in roles or "devices_per_node" in roles:
        return roles
    nodes, devices = roles.index("nodes"), roles.index("devices")
    seen: dict[str, set[str]] = {}
    for row in table.rows:
        seen.setdefault(normal(row[devices].text), set()).add(normal(row[nodes].text))
    if any(len(different) > 1 for different in seen.values()):
        return ["devices_per_node" if role == "devices" else role for role in roles]
    return roles


def _is_numeric(table: Table, column: int) -> bool:
    return any(parse_number(row[column].text) for row in table.rows)


def _key_columns(table: Table, roles: list[str | None]) -> list[int]:
    """Columns that tell configurations apart: not measured, not counted, and not different in every row."""
    keys = []
    for column, role in enumerate(roles):
        if role in MEASURED or role in COUNTS:
            continue
        values = {normal(row[column].text) for row in table.rows}
        if role in ("batch", "precision") or len(values) < len(table.rows):
            keys.append(column)
    return keys


def _row(table: Table, roles: list[str | None], keys: list[int], cells: tuple[Cell, ...], comma: bool) -> Row:
    figures: dict[str, list[Figure]] = {}
    for column, (role, cell) in enumerate(zip(roles, cells, strict=True)):
        number = parse_number(cell.text, comma) if role else None
        if role and number:
            figures.setdefault(role, []).append(Figure(number, cell, table.head[column].text, column))
    kept = {role: tuple(found) for role, found in figures.items()}
    devices, nodes = _counts(roles, cells, kept)
    batch = kept.get("batch")
    return Row(
        line=cells[0].line,
        devices=devices,
        nodes=nodes,
        key=tuple(normal(cells[column].text) for column in keys),
        batch=int(batch[0].number.value) if batch and batch[0].number.value < 1e9 else None,
        cells=cells,
        figures=kept,
    )


def _counts(
    roles: list[str | None], cells: tuple[Cell, ...], figures: dict[str, tuple[Figure, ...]]
) -> tuple[int | None, int | None]:
    def count(role: str) -> int | None:
        found = figures.get(role)
        whole = found and found[0].number.decimals == 0 and 0 < found[0].number.value < 1e7
        return int(found[0].number.value) if found and whole else None

    named = [cells[column].text for column, role in enumerate(roles) if role in ("topology", "devices")]
    nodes = count("nodes") or next(filter(None, map(nodes_in, named)), None)
    devices = count("devices") or next(filter(None, map(devices_in, named)), None)
    per_node = count("devices_per_node")
    if nodes and per_node and devices and nodes * per_node != devices:
        # Counts that contradict each other are a finding of their own, and no ground for another.
        return None, nodes
    if devices is None and per_node:
        # A table without a column for nodes speaks of one.
        devices = per_node * (nodes or 1)
    return devices, nodes


def _parted(rows: list[Row]) -> Iterator[list[Row]]:
    counted = [row.devices for row in rows if row.devices is not None]
    fewest = min(counted, default=None)
    if fewest is None or counted.count(fewest) < 2:
        yield rows
        return
    part: list[Row] = []
    for row in rows:
        if row.devices == fewest and part:
            yield part
            part = []
        part.append(row)
    yield part


def counts_whole_job(figure: Figure) -> bool:
    """Whether a throughput is that of all devices together, in samples a second."""
    return not is_per_device(figure.head) and seconds_per_unit(figure.head) in (None, 1.0)


PRECISIONS = (
    ("fp32", re.compile(r"fp32|float32|单精度", re.I)),
    ("tf32", re.compile(r"tf32", re.I)),
    ("amp", re.compile(r"\bamp\b|fp16|float16|混合精度|mixed|half", re.I)),
    ("bf16", re.compile(r"bf16|bfloat16", re.I)),
)


def precision_of(table: Table, row: Row, head: str) -> str | None:
    """The one precision that the head, the row or the headings name, nearest first; None where unclear."""
    for text in (simplified(head), " ".join(row.key), table.caption, *reversed(table.headings)):
        named = [name for name, pattern in PRECISIONS if pattern.search(text)]
        if named:
            return named[0] if len(named) == 1 else None
    return None
