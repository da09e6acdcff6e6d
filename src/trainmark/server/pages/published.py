"""What others published of a model, and where our latest results of it stand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from trainmark.logs.ledger.entry import LedgerEntry, published_names
from trainmark.logs.ledger.load import load
from trainmark.logs.ledger.standing import Standing, in_words, standing
from trainmark.measure.key import Key
from trainmark.report.format.label import rate_unit
from trainmark.report.format.published_words import LANGUAGES
from trainmark.report.format.words import Lang
from trainmark.server.access.roles import Role
from trainmark.server.access.view import viewing
from trainmark.server.database.queries.rows import CaseRow
from trainmark.server.pages.frame.respond import language_of, page, shown, text_in
from trainmark.server.pages.queries import cases_of, workloads

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


@shown(Role.READ)
def published(request: Request) -> Response:
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
    return page(
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
        sentence = in_words(place, LANGUAGES[lang]) if place else ""
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
