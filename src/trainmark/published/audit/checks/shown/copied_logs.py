"""One log shown under two topologies."""

from __future__ import annotations

from collections.abc import Iterator

from trainmark.published.audit.claims.shown_logs import ShownLog, shown_logs
from trainmark.published.audit.finding import Finding, Severity
from trainmark.published.audit.report.report import Report

# Fewer stamps can agree by chance.
LEAST_STAMPS = 3


def check(report: Report) -> Iterator[Finding]:
    first: dict[tuple[str, ...], ShownLog] = {}
    for log in shown_logs(report):
        if len(log.stamps) < LEAST_STAMPS or len(set(log.stamps)) < LEAST_STAMPS:
            continue
        earlier = first.setdefault(log.stamps, log)
        if earlier is not log and _name(log) != _name(earlier):
            yield Finding(
                "copied-log",
                Severity.ERROR,
                report.where(log.block.line),
                claimed=f"a log of {_name(log)}",
                derived=f"the log of {_name(earlier)} on line {earlier.block.line}",
                message=(
                    f"all {len(log.stamps)} time stamps are those of the log on line {earlier.block.line}: "
                    "one run is shown as two."
                ),
            )


def _name(log: ShownLog) -> str:
    if log.topology:
        return "{}n{}g".format(*log.topology)
    world = log.first("world_size")
    return f"world size {world.value}" if world else "no stated topology"
