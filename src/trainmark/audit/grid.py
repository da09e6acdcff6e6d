"""A table read as a grid: the role of each column, the devices of each row, and the figures in its cells.

Rows of one configuration that differ in their number of devices make a scaling series.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from trainmark.audit.finding import AuditFinding
from trainmark.audit.report import Report
from trainmark.audit.tables import ReportTable, TableCell
from trainmark.audit.terms import (
    Number,
    devices_in,
    is_per_device,
    nodes_in,
    normalize_text,
    only_precision,
    parse_duration,
    parse_number,
    precisions_in,
    role_of,
    seconds_in_head,
    seconds_per_unit,
    uses_decimal_comma,
    without_precision,
)

MEASURED_ROLES = {
    "throughput", "speedup", "efficiency", "time_to_train", "accuracy", "memory", "step_time", "epochs",
    "ratio_of_columns", "mfu", "hfu", "tflops", "loss",
}  # fmt: skip
COUNT_ROLES = {"nodes", "devices", "devices_per_node", "topology"}
TIME_ROLES = {"time_to_train", "step_time"}
# Columns that follow from the number of devices: rows of one series may differ in them.
FOLLOWING = {"global_batch", "global_batch_tokens", "accumulation"}
SPEAKS_OF_RATE = re.compile(
    r"(images?|imgs?|samples?|words?|tokens?|seq(uence)?s?|sentences?) ?(/|per) ?(s|sec|second)\b"
    r"|吞吐|throughput",
    re.I,
)
# `FP32 XLA` is still a bare precision.
LONGEST_BARE_REST = 4
RATE_IN_CELL = re.compile(r"\d ?[a-z]+ ?/ ?(?:s|sec|second)\b", re.I)


@dataclass(frozen=True)
class TableFigure:
    """A number in a cell, with the head of its column."""

    number: Number
    cell: TableCell
    head: str
    column: int

    def scaled(self, factor: float) -> TableFigure:
        """The same printed figure in another unit."""
        return replace(self, number=self.number.scaled(factor))

    def finding(self, code: str, derived: str, message: str, is_warning: bool = False) -> AuditFinding:
        """What is wrong with this figure."""
        return AuditFinding(code, self.cell.line, self.cell.text, derived, message, is_warning)


@dataclass(frozen=True)
class GridRow:
    """One row read: how many devices, and its figures by role."""

    line: int
    devices: int | None
    nodes: int | None
    key: tuple[str, ...]
    batch: int | None
    cells: tuple[TableCell, ...]
    figures: dict[str, tuple[TableFigure, ...]]

    def of(self, role: str) -> tuple[TableFigure, ...]:
        return self.figures.get(role, ())

    def in_column(self, column: int) -> TableFigure | None:
        every = (figure for figures in self.figures.values() for figure in figures)
        return next((figure for figure in every if figure.column == column), None)

    @property
    def scale(self) -> int | None:
        """What scaling counts: devices, or nodes where no device is counted."""
        return self.devices or self.nodes


@dataclass(frozen=True)
class GridColumn:
    """One column: `precision` is the one its head names."""

    index: int
    head: str
    role: str | None
    precision: str | None


@dataclass(frozen=True)
class TableGrid:
    """A table with its columns and rows read; `keys` are the columns that tell configurations apart."""

    table: ReportTable
    columns: tuple[GridColumn, ...]
    rows: tuple[GridRow, ...]
    keys: tuple[int, ...]

    def with_role(self, *roles: str) -> tuple[GridColumn, ...]:
        return tuple(column for column in self.columns if column.role in roles)

    @property
    def texts(self) -> tuple[str, ...]:
        """The headings and sentences above the table."""
        return (*self.table.headings, self.table.around, self.table.caption)

    @property
    def words(self) -> str:
        return " ".join(self.texts)


def all_grids(report: Report) -> list[TableGrid]:
    return report.cached(
        "grids", lambda whole: (grid for table in whole.tables if (grid := read_grid(table)))
    )


def read_grid(table: ReportTable) -> TableGrid | None:
    """The grid of a table that measures something, or None."""
    roles = _roles(table)
    if not {"throughput", "speedup", "time_to_train", "mfu", "tflops", "global_batch"} & set(roles):
        return None
    columns = tuple(
        GridColumn(index, cell.text, role, only_precision(cell.text))
        for index, (cell, role) in enumerate(zip(table.head, roles, strict=True))
    )
    keys = _key_columns(table, roles)
    numbers = _numbers(table, roles)
    rows = tuple(
        _row(columns, keys, cells, values) for cells, values in zip(table.rows, numbers, strict=True)
    )
    return TableGrid(table, columns, rows, keys)


def counts_whole_job(figure: TableFigure) -> bool:
    """Whether a throughput is that of all devices together, in samples a second."""
    return not is_per_device(figure.head) and seconds_per_unit(figure.head) in (None, 1.0)


def _roles(table: ReportTable) -> list[str | None]:
    """The role of each column; unnamed numbers are throughputs where the caption says so."""
    roles = [role_of(cell.text) for cell in table.head]
    if roles and roles[0] in (None, "topology") and any(devices_in(row[0].text) for row in table.rows):
        roles[0] = "topology"
    counts = {"devices", "devices_per_node", "topology"} & set(roles)
    around = " ".join((table.around, table.caption, *table.headings[-1:], table.head[0].text))
    if counts and not MEASURED_ROLES & set(roles) and SPEAKS_OF_RATE.search(normalize_text(around)):
        numeric = [_is_numeric(table, index) for index in range(len(roles))]
        roles = [
            "throughput" if is_numeric and role not in COUNT_ROLES else role
            for role, is_numeric in zip(roles, numeric, strict=True)
        ]
    return _with_devices_per_node(table, _of_bare_precisions(table, roles))


def _of_bare_precisions(table: ReportTable, roles: list[str | None]) -> list[str | None]:
    """A head that is but a precision, over numbers, holds what its neighbours of other precisions do."""
    others = {role for cell, role in zip(table.head, roles, strict=True) if only_precision(cell.text)} - {
        None, "precision", "speedup", "accuracy", "batch",
    }  # fmt: skip
    resolved = list(roles)
    for index, cell in enumerate(table.head):
        is_bare = only_precision(cell.text) and len(without_precision(cell.text)) <= LONGEST_BARE_REST
        if is_bare and roles[index] in (None, "precision") and _is_numeric(table, index):
            rates = any(RATE_IN_CELL.search(row[index].text) for row in table.rows)
            resolved[index] = "throughput" if rates else others.copy().pop() if len(others) == 1 else None
    return resolved


def _with_devices_per_node(table: ReportTable, roles: list[str | None]) -> list[str | None]:
    """`gpus` beside `nodes` counts those of one node where more nodes do not raise it."""
    if "nodes" not in roles or "devices" not in roles or "devices_per_node" in roles:
        return roles
    nodes, devices = roles.index("nodes"), roles.index("devices")
    seen: dict[str, set[str]] = {}
    for row in table.rows:
        seen.setdefault(normalize_text(row[devices].text), set()).add(normalize_text(row[nodes].text))
    if any(len(different) > 1 for different in seen.values()):
        return ["devices_per_node" if role == "devices" else role for role in roles]
    return roles


def _is_numeric(table: ReportTable, column: int) -> bool:
    return any(parse_number(row[column].text) for row in table.rows)


def _key_columns(table: ReportTable, roles: list[str | None]) -> tuple[int, ...]:
    """Columns that tell configurations apart: not measured, not counted, and not different in every row."""
    keys = []
    first_measured = next((column for column, role in enumerate(roles) if role in MEASURED_ROLES), len(roles))
    for column, role in enumerate(roles):
        if role in MEASURED_ROLES or role in COUNT_ROLES or role in FOLLOWING:
            continue
        # A number to the right of the measured ones is measured too.
        if role is None and column > first_measured and _is_numeric(table, column):
            continue
        values = {normalize_text(row[column].text) for row in table.rows}
        if role in ("batch", "precision") or len(values) < len(table.rows):
            keys.append(column)
    return tuple(keys)


def _numbers(table: ReportTable, roles: list[str | None]) -> list[list[Number | None]]:
    comma = uses_decimal_comma([cell.text for row in table.rows for cell in row])
    numbers = [
        [
            _number(cell.text, role, table.head[index].text, comma)
            for index, (cell, role) in enumerate(zip(row, roles, strict=True))
        ]
        for row in table.rows
    ]
    for column, role in enumerate(roles):
        if role == "throughput":
            _coarsen(numbers, column)
    return numbers


def _number(text: str, role: str | None, head: str, comma: bool) -> Number | None:
    """The number of a cell; times in seconds, marked by `rest`, wherever cell or head name the unit."""
    if role not in TIME_ROLES:
        return parse_number(text, comma)
    if duration := parse_duration(text):
        return duration
    number, unit = parse_number(text, comma), seconds_in_head(head)
    return replace(number.scaled(unit), rest="s") if number and unit and not number.rest else number


def _coarsen(numbers: list[list[Number | None]], column: int) -> None:
    """Whole numbers that all end in zeros were rounded to those: 11,400,000 has not eight digits."""
    values = [number for row in numbers if (number := row[column])]
    step = 1
    while (
        len(values) > 1
        and step < 1e9
        and all(
            number.decimals == 0 and number.value % (10 * step) == 0 and number.value for number in values
        )
    ):
        step *= 10
    if step > 1:
        for row in numbers:
            if number := row[column]:
                row[column] = replace(number, step=float(step))


def _row(
    columns: tuple[GridColumn, ...],
    keys: tuple[int, ...],
    cells: tuple[TableCell, ...],
    numbers: list[Number | None],
) -> GridRow:
    figures: dict[str, list[TableFigure]] = {}
    for column, cell, number in zip(columns, cells, numbers, strict=True):
        if number:
            figure = TableFigure(number, cell, column.head, column.index)
            figures.setdefault(column.role or "unnamed", []).append(figure)
    by_role = {role: tuple(group) for role, group in figures.items()}
    devices, nodes = _counts(columns, cells, by_role)
    batch = by_role.get("batch")
    return GridRow(
        line=cells[0].line,
        devices=devices,
        nodes=nodes,
        key=tuple(normalize_text(cells[column].text) for column in keys),
        batch=int(batch[0].number.value) if batch and batch[0].number.value < 1e9 else None,
        cells=cells,
        figures=by_role,
    )


def _counts(
    columns: tuple[GridColumn, ...], cells: tuple[TableCell, ...], figures: dict[str, tuple[TableFigure, ...]]
) -> tuple[int | None, int | None]:
    def count(role: str) -> int | None:
        matching = figures.get(role)
        whole = matching and matching[0].number.decimals == 0 and 0 < matching[0].number.value < 1e7
        return int(matching[0].number.value) if matching and whole else None

    named = [cells[column.index].text for column in columns if column.role in ("topology", "devices")]
    nodes = count("nodes") or next(filter(None, map(nodes_in, named)), None)
    devices = count("devices") or next(filter(None, map(devices_in, named)), None)
    per_node = count("devices_per_node")
    if nodes and per_node and devices and nodes * per_node != devices:
        # Counts that contradict each other are a finding of their own, and no ground for another.
        return None, None
    if devices is None and per_node:
        # A table without a column for nodes speaks of one.
        devices = per_node * (nodes or 1)
    return devices, nodes


@dataclass(frozen=True)
class ScalingSeries:
    """Rows of one configuration, as they stand."""

    table: ReportTable
    rows: tuple[GridRow, ...]


def all_series(report: Report) -> list[ScalingSeries]:
    return report.cached("series", lambda whole: (one for grid in all_grids(whole) for one in _series(grid)))


def _series(grid: TableGrid) -> list[ScalingSeries]:
    """The rows of a table by what they have in common; a row of fewest devices begins a series anew."""
    groups: dict[tuple[str, ...], list[GridRow]] = {}
    for row in grid.rows:
        groups.setdefault(row.key, []).append(row)
    return [ScalingSeries(grid.table, tuple(part)) for rows in groups.values() for part in _parted(rows)]


def _parted(rows: list[GridRow]) -> Iterator[list[GridRow]]:
    counted = [row.devices for row in rows if row.devices is not None]
    fewest = min(counted, default=None)
    if fewest is None or counted.count(fewest) < 2:
        yield rows
        return
    part: list[GridRow] = []
    for row in rows:
        if row.devices == fewest and part:
            yield part
            part = []
        part.append(row)
    yield part


def precision_of(table: ReportTable, row: GridRow, head: str) -> str | None:
    """The one precision that the head, the row or the headings name, nearest first; None where unclear."""
    for text in (head, " ".join(row.key), table.caption, *reversed(table.headings)):
        if precisions_in(text):
            return only_precision(text)
    return None
