"""What a case's row says of its history, and its changes: computed anew whenever a result is added."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from trainmark.measure.history.changes import changes
from trainmark.measure.history.facts import changed_facts
from trainmark.measure.history.series import RunPoint
from trainmark.server.database.models import Case, Change, Result
from trainmark.server.database.queries.facts import facts_by_id

RECENT = 30
MOST_FACTS = 8
# Older results keep the changes that were seen among them.
MOST_ANALYSED = 500
MOST_MOVED = 3


def refresh(connection: Connection, case_id: int) -> int | None:
    """Bring the summary and the changes of a case up to date; a case without results goes.

    Returns the result at which the newest change begins, where it was not known.
    """
    columns = (
        Result.id,
        Result.run_id,
        Result.time,
        Result.throughput,
        Result.low,
        Result.high,
        Result.n,
        Result.values.label("trial_values"),
        Result.facts_id,
        Result.own_facts,
        Result.doubts,
        Result.mfu,
        Result.conformance,
    )
    rows = connection.execute(
        select(*columns).where(Result.case_id == case_id).order_by(Result.time, Result.id)
    ).all()
    if not rows:
        connection.execute(delete(Change).where(Change.case_id == case_id))
        connection.execute(delete(Case).where(Case.id == case_id))
        return None
    shared = facts_by_id(connection, {row.facts_id for row in rows})
    last = rows[-1]
    summary: dict[str, Any] = {
        "results": len(rows),
        "first_time": rows[0].time,
        "last_time": last.time,
        "last_throughput": last.throughput,
        "last_low": last.low,
        "last_high": last.high,
        "last_n": last.n,
        "last_run_id": last.run_id,
        "last_version": {**shared[last.facts_id], **last.own_facts}.get("framework_version"),
        "last_doubts": last.doubts,
        "last_mfu": last.mfu,
        "conformance": last.conformance,
        "best_throughput": max(row.throughput for row in rows),
        "recent": [row.throughput for row in rows[-RECENT:]],
    }
    analysed = rows[-MOST_ANALYSED:]
    points = [
        RunPoint(str(row.id), row.time, tuple(row.trial_values), {**shared[row.facts_id], **row.own_facts})
        for row in analysed
    ]
    known = _changes(connection, case_id)
    connection.execute(delete(Change).where(Change.case_id == case_id, Change.time >= analysed[0].time))
    if changed := change_rows(case_id, [row.id for row in analysed], points):
        connection.execute(insert(Change), changed)
    stored = _changes(connection, case_id)
    newest = stored[-1] if stored else None
    summary |= {
        "changes": len(stored),
        "last_change_time": newest[0] if newest else None,
        "last_change_ratio": newest[1] if newest else None,
    }
    connection.execute(update(Case).where(Case.id == case_id).values(summary))
    if not changed or _is_known(changed[-1], known, [row.time for row in rows]):
        return None
    begin: int = changed[-1]["result_id"]
    return begin


def _changes(connection: Connection, case_id: int) -> list[tuple[float, float]]:
    chosen = select(Change.time, Change.ratio).where(Change.case_id == case_id)
    return [(row.time, row.ratio) for row in connection.execute(chosen.order_by(Change.time))]


def _is_known(change: dict[str, Any], known: Iterable[tuple[float, float]], times: Sequence[float]) -> bool:
    """Whether it was found before: another result may move its beginning by a few places."""
    place = bisect_left(times, change["time"])
    return any(
        (change["ratio"] < 1) == (ratio < 1) and abs(bisect_left(times, time) - place) <= MOST_MOVED
        for time, ratio in known
    )


def change_rows(case_id: int, result_ids: list[int], points: list[RunPoint]) -> list[dict[str, Any]]:
    """Return the changes of a series as rows, each with the facts that changed with it."""
    detected = changes(points)
    places = [0, *(change.index for change in detected), len(points)]
    return [
        {
            "case_id": case_id,
            "result_id": result_ids[change.index],
            "time": points[change.index].time,
            "ratio": change.ratio,
            "low": change.low,
            "high": change.high,
            "probability": change.probability,
            "confirmed_by": change.confirmed_by,
            "facts": [
                [fact.name, fact.before or "", fact.after or ""]
                for fact in changed_facts(points, change.index, places[number], places[number + 2])[
                    :MOST_FACTS
                ]
            ],
        }
        for number, change in enumerate(detected)
    ]
