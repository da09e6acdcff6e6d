"""Whether the nodes have the same processors to give, and let them run at their speed."""

from __future__ import annotations

from collections.abc import Iterator

from trainmark.doctor.examined import Examined, most_common
from trainmark.doctor.facts import Host
from trainmark.doctor.finding import About, Check, Finding, bad, ok, warn


def find(examined: Examined) -> Iterator[Finding]:
    machine = most_common(examined.each(lambda facts: facts.host.machine))
    cpus = most_common(examined.each(lambda facts: facts.host.cpus))
    for node, facts in examined.facts():
        host = facts.host
        value = f"{host.cpus} × {host.machine}" + (f", {host.governor}" if host.governor else "")
        if host.machine != machine:
            what = f"it is {host.machine}, the others are {machine}"
            yield bad(
                node,
                value,
                what,
                f"leave it out with --exclude {node}",
            )
        elif warnings := list(_warnings(node, host, value, cpus)):
            yield from warnings
        else:
            yield ok(node, value)


def _warnings(node: str, host: Host, value: str, cpus: int | None) -> Iterator[Finding]:
    if host.cpus != cpus:
        yield warn(
            node,
            value,
            f"{host.cpus} processors may be used, on the others {cpus}",
            f"on {node}: compare `nproc` and `nproc --all`, and what the batch system gives",
        )
    if host.cpu_quota is not None and host.cpu_quota < host.cpus:
        yield warn(
            node,
            value,
            f"a control group allows {host.cpu_quota:g} of {host.cpus} processors",
            "start the container with a larger `--cpus`, or ask the batch system for more",
        )
    if host.governor not in (None, "performance"):
        yield warn(
            node,
            value,
            f"the governor of its processors is {host.governor}",
            f"on {node}: `sudo cpupower frequency-set -g performance`",
        )


CHECK = Check("processors", About.HOST, find)
