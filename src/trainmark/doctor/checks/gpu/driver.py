"""Whether the GPU driver is the same on every node."""

from __future__ import annotations

from collections.abc import Iterator

from trainmark.doctor.examined import Examined, most_common
from trainmark.doctor.finding import About, Check, Finding, bad, ok


def find(examined: Examined) -> Iterator[Finding]:
    drivers = {name: facts.gpus[0].driver for name, facts in examined.facts() if facts.gpus}
    usual = most_common(drivers)
    for node, own in drivers.items():
        if own == usual:
            yield ok(node, own or "not told")
        else:
            yield bad(
                node,
                own or "not told",
                f"its driver is {own}, the others' {usual}",
                f"on {node}: install driver {usual} and reboot",
            )


CHECK = Check("driver", About.DEVICES, find)
