"""The number of devices in a shown log against its path, its command and its own rates."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from trainmark.published.audit.claims.shown_logs import ShownLog, ShownSetting, Step, seconds, shown_logs
from trainmark.published.audit.finding import Finding, Severity
from trainmark.published.audit.report.report import Report

# The images of a step over the batch of a device come out whole to about a percent.
TOLERANCE = 0.03
LEAST_STEPS = 4


def check(report: Report) -> Iterator[Finding]:
    for log in shown_logs(report):
        world, nodes = log.first("world_size"), log.first("nodes")
        per_node = log.first("devices_per_node")
        if log.topology:
            stated = f"{log.topology[0]}n{log.topology[1]}g"
            yield from _against(report, world, log.devices, "world size", stated)
            yield from _against(report, nodes, log.topology[0], "number of nodes", stated)
            yield from _against(report, per_node, log.topology[1], "number of devices a node", stated)
        elif nodes and per_node:
            devices = int(nodes.value) * int(per_node.value)
            yield from _against(report, world, devices, "world size", f"the command on line {nodes.line}")
        yield from _by_rate(report, log, world)


def _against(
    report: Report, stated: ShownSetting | None, expected: int | None, what: str, source: str
) -> Iterator[Finding]:
    if stated and expected and int(stated.value) != expected:
        yield Finding(
            "world-size-mismatch",
            Severity.ERROR,
            report.where(stated.line),
            claimed=f"{what} {stated.value}",
            derived=f"{what} {expected}",
            message=f"the {what} is {expected} by {source}.",
        )


def _by_rate(report: Report, log: ShownLog, world: ShownSetting | None) -> Iterator[Finding]:
    """A rate times the seconds of its step gives the images of the step, whatever was typed above it."""
    batch = log.first("batch")
    if not (world and batch and int(batch.value) and int(world.value)):
        return
    images = [
        now.rate * (seconds(now.stamp) - seconds(before.stamp))
        for before, now in zip(log.steps, log.steps[1:], strict=False)
        if _follows(before, now) and now.rate and now.stamp and before.stamp
    ]
    if len(images) < LEAST_STEPS:
        return
    derived = median(images) / int(batch.value)
    whole = round(derived)
    is_clear = whole > 0 and abs(derived - whole) <= TOLERANCE * whole
    if is_clear and abs(whole - int(world.value)) > TOLERANCE * int(world.value):
        yield Finding(
            "rate-contradicts-world-size",
            Severity.ERROR,
            report.where(world.line),
            claimed=f"world size {world.value}",
            derived=f"world size {whole}",
            message=(
                f"rates times seconds between lines are about {median(images):.0f} images a step, "
                f"{whole} × {batch.value}: the log is of {whole} devices."
            ),
        )


def _follows(before: Step, now: Step) -> bool:
    return now.number == before.number + 1
