"""The leaderboard: the latest result of each case of a workload, the fastest of a device first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from trainmark.report.format.label import axes
from trainmark.server.access.roles import Role
from trainmark.server.access.view import viewing
from trainmark.server.database.queries.rows import CaseRow
from trainmark.server.pages.frame.respond import page, shown, text_in
from trainmark.server.pages.queries import cases_of, workloads

MOST_CASES = 2000
ROWS_A_BOARD = 20
NOT_CONFORMANT = "not_conformant"
# Parts of a key that have a column of their own or belong to every row of a board.
IN_COLUMNS = frozenset(
    {"workload", "framework", "framework_version", "precision", "loss_scale", "batch_per_device", "nodes",
     "devices_per_node", "device", "target", "data", "variant", "recipe"}
)  # fmt: skip


@dataclass(frozen=True)
class Place:
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
class Board:
    """A workload on one kind of device; `count` is how many cases there are, shown or not."""

    workload: str
    device: str
    unit: str
    rows: tuple[Place, ...]
    count: int

    @property
    def more(self) -> bool:
        return self.count > len(self.rows)


@shown(Role.READ)
def leaderboard(request: Request) -> Response:
    wanted, device = text_in(request, "workload"), text_in(request, "device")
    with viewing(request) as connection:
        names = workloads(connection)
        workload = wanted if wanted in names else next(iter(names), "")
        cases = cases_of(connection, workload, MOST_CASES) if workload else ()
    devices = sorted({case.device for case in cases})
    most = MOST_CASES if request.query_params.get("all") == "1" else ROWS_A_BOARD
    chosen = [case for case in cases if not device or case.device == device]
    return page(
        request,
        "leaderboard.html.j2",
        "leaderboard",
        boards=boards(chosen, most),
        workloads=names,
        workload=workload,
        devices=devices,
        device=device,
    )


def boards(cases: Sequence[CaseRow], most: int) -> list[Board]:
    """Group cases, the fastest first, into boards by device and unit; the fastest device's board first."""
    groups: dict[tuple[str, str], list[CaseRow]] = {}
    for case in cases:
        groups.setdefault((case.device, case.unit), []).append(case)
    return [
        Board(own[0].workload, device, unit, _places(own, most), len(own))
        for (device, unit), own in groups.items()
    ]


def _places(cases: Sequence[CaseRow], most: int) -> tuple[Place, ...]:
    ranked = [case for case in cases if case.conformance != NOT_CONFORMANT]
    ranks = {case.id: rank for rank, case in enumerate(ranked, 1)}
    best = next(iter(ranked), cases[0])
    return tuple(_place(case, ranks.get(case.id), best) for case in cases[:most])


def _place(case: CaseRow, rank: int | None, best: CaseRow) -> Place:
    count, key = max(1, case.devices), case.key
    fastest = best.last_throughput / max(1, best.devices)
    extras = {name: value for name, value in key.items() if name not in IN_COLUMNS and value is not None}
    scale = key.get("loss_scale")
    return Place(
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
