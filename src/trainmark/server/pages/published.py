"""What others published of a model, with our latest results of it among the rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from starlette.requests import Request
from starlette.responses import Response

from trainmark.published.ledger.entry import Entry
from trainmark.published.ledger.load import load
from trainmark.published.ledger.names import published_names
from trainmark.report.format.label import rate_unit
from trainmark.server.access.roles import Role
from trainmark.server.database.engine import reading
from trainmark.server.database.queries.rows import CaseRow
from trainmark.server.pages.queries import cases_of, workloads
from trainmark.server.pages.respond import page, shown, text_in
from trainmark.server.pages.templating import day

MOST_CASES = 500
MOST_ROWS = 150
MOST_WORDS = 8
MOST_OFFERED = 60


@dataclass(frozen=True)
class PublishedRow:
    """A row of the ledger, or with `case` one of ours; the rate is that of one device."""

    source: str
    framework: str
    version: str
    device: str
    precision: str
    batch: str
    topology: str
    per_device: float
    unit: str
    date: str
    errata: tuple[str, ...] = ()
    case: int | None = None
    doubts: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """What the words that a reader gives are looked for in."""
        parts = (self.source, self.framework, self.version, self.device, self.precision, self.topology, self.date)
        return " ".join(parts).lower()


@shown(Role.READ)
def published(request: Request) -> Response:
    wanted, asked = text_in(request, "words"), text_in(request, "workload")
    with reading(request.app.state.engine) as connection:
        own = workloads(connection)
        names = offered(own)
        workload = asked if asked in rows_by_workload() else names[0]
        ours = [case for name in own if _is_model(name, workload) for case in cases_of(connection, name, MOST_CASES)]
    rows = [*rows_by_workload().get(workload, ()), *our_rows(ours, workload)]
    terms = wanted.lower().split()[:MOST_WORDS]
    matches = [row for row in rows if all(term in row.text for term in terms)]
    matches.sort(key=lambda row: (row.unit, -row.per_device))
    return page(
        request,
        "published.html.j2",
        "published",
        rows=visible_rows(matches),
        count=len(matches),
        workloads=names if workload in names else [workload, *names],
        workload=workload,
        wanted=wanted,
    )


def visible_rows(rows: Sequence[PublishedRow]) -> list[PublishedRow]:
    """Return all of ours, and the fastest of the others as far as there is room."""
    room = MOST_ROWS - sum(row.case is not None for row in rows)
    shown_rows = []
    for row in rows:
        if row.case is None:
            room -= 1
        if row.case is not None or room >= 0:
            shown_rows.append(row)
    return shown_rows[: 2 * MOST_ROWS]


@cache
def rows_by_workload() -> dict[str, tuple[PublishedRow, ...]]:
    """Return the rows of the ledger that have a rate of one device, by published name, the largest group first."""
    groups: dict[str, list[PublishedRow]] = {}
    for entry in load():
        if entry.row.per_device:
            groups.setdefault(entry.row.workload, []).append(_published(entry, entry.row.per_device))
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    return {name: tuple(rows) for name, rows in ordered}


def _published(entry: Entry, per_device: float) -> PublishedRow:
    row = entry.row
    return PublishedRow(
        source=entry.source,
        framework=row.framework,
        version=row.framework_version or "",
        device=row.device or "",
        precision=row.precision or "",
        batch=str(row.batch_per_device or ""),
        topology=row.topology or "",
        per_device=per_device,
        unit=row.unit,
        date=str(entry.date or ""),
        errata=entry.errata,
    )


def our_rows(cases: Iterable[CaseRow], workload: str) -> list[PublishedRow]:
    return [
        PublishedRow(
            source=case.machine,
            framework=case.framework,
            version=case.last_version or "",
            device=case.device,
            precision=case.precision,
            batch=str(case.key.get("batch_per_device") or ""),
            topology=f"{case.key.get('nodes', 1)}n{case.key.get('devices_per_node', 1)}g",
            per_device=case.last_throughput / max(1, case.devices),
            unit=rate_unit(case.unit),
            date=day(case.last_time),
            case=case.id,
            doubts=case.last_doubts,
        )
        for case in cases
        if workload in published_names(case.workload, case.key.get("size"))
    ]


def _is_model(workload: str, published_name: str) -> bool:
    """Whether a published name is that of a workload here at some size."""
    return published_name == workload or published_name.startswith(workload)


def offered(own: Sequence[str]) -> list[str]:
    """Return the published names to choose from: what is measured here, then those with the most rows."""
    ours = [name for name in rows_by_workload() if any(_is_model(workload, name) for workload in own)]
    return list(dict.fromkeys([*ours[:MOST_OFFERED], *rows_by_workload()]))[:MOST_OFFERED]
