"""Frameworks beside each other: one table a case, a row for each framework at each topology."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trainmark.logs.ledger import Standing
from trainmark.measure.comparison import framework_comparisons
from trainmark.measure.figure import Ratio, Result
from trainmark.measure.key import Key
from trainmark.pages import label
from trainmark.report.conformance import NOT_CHECKED, Conformance
from trainmark.report.document import Document


@dataclass(frozen=True)
class FrameworkRow:
    """One framework at one topology; `share` is of the best one there, `published` of the same framework."""

    result: Result
    share: Ratio | None
    published: Standing | None
    conformance: Conformance

    @property
    def name(self) -> str:
        return label.framework(self.result.key)

    @property
    def fastest(self) -> bool:
        bounds = self.share.interval if self.share else None
        return bounds is not None and bounds.low == bounds.high == 1


@dataclass(frozen=True)
class FrameworkTable:
    """`key` is what the rows share."""

    name: str
    key: Key
    unit: str
    rows: tuple[FrameworkRow, ...]

    @property
    def frameworks(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(row.name for row in self.rows))

    @property
    def topologies(self) -> tuple[tuple[str, tuple[FrameworkRow, ...]], ...]:
        grouped: dict[str, list[FrameworkRow]] = {}
        for row in self.rows:
            grouped.setdefault(row.result.key.topology, []).append(row)
        return tuple((topology, tuple(rows)) for topology, rows in grouped.items())

    @property
    def unlike(self) -> tuple[tuple[str, Conformance], ...]:
        """The frameworks that do not conform, each once for all that differs."""
        differing = {(row.name, row.conformance): None for row in self.rows if row.conformance.differs}
        return tuple(differing)

    @property
    def with_published(self) -> tuple[FrameworkRow, ...]:
        """The rows beside which a published figure stands."""
        return tuple(row for row in self.rows if row.published)


def tables_of(document: Document) -> tuple[FrameworkTable, ...]:
    return framework_tables(document.results, document.standings, document.conformance)


def framework_tables(
    results: Sequence[Result], standings: Mapping[Key, Standing], conformance: Mapping[Key, Conformance]
) -> tuple[FrameworkTable, ...]:
    comparisons = framework_comparisons(results)
    names = label.distinguishing(contest.key for contest in comparisons)
    return tuple(
        FrameworkTable(
            name=label.series(contest.key, names),
            key=contest.key,
            unit=label.rate_unit(contest.entrants[0].result.unit),
            rows=tuple(
                FrameworkRow(
                    entrant.result,
                    entrant.share,
                    standings.get(entrant.result.key),
                    conformance.get(entrant.result.key, NOT_CHECKED),
                )
                for entrant in contest.entrants
            ),
        )
        for contest in comparisons
    )


def shares(results: Sequence[Result]) -> dict[Key, Ratio | None]:
    """The share of the best by result, for those that were compared."""
    return {
        entrant.result.key: entrant.share
        for contest in framework_comparisons(results)
        for entrant in contest.entrants
    }


def published_figure(standing: Standing) -> float | None:
    """Theirs: of all devices where they have as many as we, otherwise of one."""
    row = standing.best.row
    return row.per_device if standing.per_device else row.throughput
