"""The leaderboard of our cases, and where the latest of them stand among what others published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from trainmark.logs.ledger.entry import LedgerEntry, published_names
from trainmark.logs.ledger.load import load
from trainmark.logs.ledger.standing import Standing, standing
from trainmark.measure.key import Key
from trainmark.pages.label import axes, rate_unit
from trainmark.pages.standing import standing_text
from trainmark.server.access.guard import viewing
from trainmark.server.access.tokens import Role
from trainmark.server.database.queries.rows import CaseRow
from trainmark.server.pages.queries import cases_of, workloads
from trainmark.server.pages.respond import language_of, render_page, requires, text_in
from trainmark.view.catalogue import Lang, translated

MOST_RANKED_CASES = 2000
ROWS_A_BOARD = 20
NOT_CONFORMANT = "not_conformant"
# Parts of a key that have a column of their own or belong to every row of a board.
IN_COLUMNS = frozenset(
    {"workload", "framework", "framework_version", "precision", "loss_scale", "batch_per_device", "nodes",
     "devices_per_node", "device", "target", "data", "variant", "recipe"}
)  # fmt: skip


@dataclass(frozen=True)
class RankedCase:
    """A case on the board; rates are those of one device, `of_best` the share of the fastest.

    What is not conformant computes something else, and has no `rank`.
    """

    case: CaseRow
    rank: int | None
    per_device: float
    low: float | None
    high: float | None
    of_best: float
    precision: str
    batch: str
    topology: str
    extras: str


@dataclass(frozen=True)
class RankedBoard:
    """A workload on one kind of device; `count` is how many cases there are, shown or not."""

    workload: str
    device: str
    unit: str
    rows: tuple[RankedCase, ...]
    count: int

    @property
    def more(self) -> bool:
        return self.count > len(self.rows)


@requires(Role.READ)
def leaderboard(request: Request) -> Response:
    wanted, device = text_in(request, "workload"), text_in(request, "device")
    with viewing(request) as connection:
        names = workloads(connection)
        workload = wanted if wanted in names else next(iter(names), "")
        cases = cases_of(connection, workload, MOST_RANKED_CASES) if workload else ()
    devices = sorted({case.device for case in cases})
    most = MOST_RANKED_CASES if request.query_params.get("all") == "1" else ROWS_A_BOARD
    chosen = [case for case in cases if not device or case.device == device]
    return render_page(
        request,
        "leaderboard.html.j2",
        "leaderboard",
        boards=boards(chosen, most),
        workloads=names,
        workload=workload,
        devices=devices,
        device=device,
    )


def boards(cases: Sequence[CaseRow], most: int) -> list[RankedBoard]:
    """Group cases, the fastest first, into boards by device and unit; the fastest device's board first."""
    groups: dict[tuple[str, str], list[CaseRow]] = {}
    for case in cases:
        groups.setdefault((case.device, case.unit), []).append(case)
    return [
        RankedBoard(own[0].workload, device, unit, _ranked_cases(own, most), len(own))
        for (device, unit), own in groups.items()
    ]


def _ranked_cases(cases: Sequence[CaseRow], most: int) -> tuple[RankedCase, ...]:
    ranked = [case for case in cases if case.conformance != NOT_CONFORMANT]
    ranks = {case.id: rank for rank, case in enumerate(ranked, 1)}
    best = next(iter(ranked), cases[0])
    return tuple(_ranked_case(case, ranks.get(case.id), best) for case in cases[:most])


def _ranked_case(case: CaseRow, rank: int | None, best: CaseRow) -> RankedCase:
    count, key = max(1, case.devices), case.key
    fastest = best.last_throughput / max(1, best.devices)
    extras = {name: value for name, value in key.items() if name not in IN_COLUMNS and value is not None}
    scale = key.get("loss_scale")
    return RankedCase(
        case=case,
        rank=rank,
        per_device=case.last_throughput / count,
        low=None if case.last_low is None else case.last_low / count,
        high=None if case.last_high is None else case.last_high / count,
        of_best=case.last_throughput / count / fastest if fastest else 0.0,
        precision=case.precision if scale in (None, "none") else f"{case.precision}/{scale}",
        batch=str(key.get("batch_per_device") or ""),
        topology=f"{key.get('nodes', 1)}n{key.get('devices_per_node', 1)}g",
        extras=axes(case.workload, tuple(extras.items())),
    )


MOST_CASES, MOST_OURS = 500, 20
MOST_ROWS = 100
MOST_WORDS = 8
MOST_OFFERED = 60
KEY_FIELDS = frozenset(Key.__dataclass_fields__) - {"axes"}


@dataclass(frozen=True)
class OurRow:
    """One of our cases beside the best published row that is comparable; the rate is that of one device."""

    case: CaseRow
    per_device: float
    standing: Standing | None
    sentence: str

    @property
    def ratio(self) -> float | None:
        return self.standing.ratio if self.standing else None


@requires(Role.READ)
def published_page(request: Request) -> Response:
    wanted, asked = text_in(request, "words"), text_in(request, "workload")
    with viewing(request) as connection:
        own = workloads(connection)
        names = offered(own)
        workload = asked if asked in entries_by_workload() else names[0]
        measured = [name for name in own if is_model(name, workload)]
        cases = [case for name in measured for case in cases_of(connection, name, MOST_CASES)]
    terms = wanted.lower().split()[:MOST_WORDS]
    entries = entries_by_workload()[workload]
    rows = [entry for entry, text in entries if all(term in text for term in terms)]
    ours = our_rows(cases, workload, [entry for entry, _ in entries], language_of(request))
    return render_page(
        request,
        "published.html.j2",
        "published",
        ours=ours,
        rows=rows[:MOST_ROWS],
        count=len(rows),
        workloads=names if workload in names else [workload, *names],
        workload=workload,
        wanted=wanted,
    )


@cache
def entries_by_workload() -> dict[str, tuple[tuple[LedgerEntry, str], ...]]:
    """Return the ledger by published name: rows with a rate of one device, the fastest first, with a text.

    The name with the most rows is first.
    """
    groups: dict[str, list[LedgerEntry]] = {}
    for entry in load():
        if entry.row.per_device:
            groups.setdefault(entry.row.workload, []).append(entry)
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    return {
        name: tuple((entry, _text(entry)) for entry in sorted(entries, key=_fastest))
        for name, entries in ordered
    }


def _fastest(entry: LedgerEntry) -> tuple[str, float]:
    return entry.row.unit, -(entry.row.per_device or 0.0)


def _text(entry: LedgerEntry) -> str:
    """What the words that a reader gives are looked for in."""
    row = entry.row
    parts = (
        entry.source,
        row.framework,
        row.framework_version,
        row.device,
        row.precision,
        row.topology,
        entry.date,
        row.submitter,
    )
    return " ".join(str(part) for part in parts if part).lower()


def our_rows(
    cases: Sequence[CaseRow], workload: str, entries: Sequence[LedgerEntry], lang: Lang
) -> list[OurRow]:
    """Return the fastest of our cases of a published model, each where it stands among the rows."""
    of_model = [case for case in cases if workload in published_names(case.workload, case.key.get("size"))]
    rows = []
    for case in of_model[:MOST_OURS]:
        place = standing(key_of(case.key), case.last_throughput, entries, rate_unit(case.unit))
        sentence = translated(standing_text(place), lang) if place else ""
        rows.append(OurRow(case, case.last_throughput / max(1, case.devices), place, sentence))
    return rows


def key_of(values: Mapping[str, Any]) -> Key:
    """Return the key that a case's row has as JSON; what is no field of it is an axis."""
    fields = {name: value for name, value in values.items() if name in KEY_FIELDS}
    axes = tuple((name, value) for name, value in values.items() if name not in KEY_FIELDS)
    return Key(**fields, axes=axes)


def is_model(workload: str, published_name: str) -> bool:
    """Whether a published name may be that of a workload here at some size."""
    return published_name.startswith(workload)


def offered(own: Sequence[str]) -> list[str]:
    """Return the published names to choose from: what is measured here, then those with the most rows."""
    ours = [name for name in entries_by_workload() if any(is_model(workload, name) for workload in own)]
    return list(dict.fromkeys([*ours[:MOST_OFFERED], *entries_by_workload()]))[:MOST_OFFERED]
