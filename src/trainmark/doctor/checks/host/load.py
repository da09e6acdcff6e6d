"""Whether the processors are busy already."""

from __future__ import annotations

from collections.abc import Iterator

from trainmark.doctor.examined import Examined
from trainmark.doctor.finding import About, Check, Finding, ok, warn
from trainmark.doctor.limits import LOAD_PER_CPU


def find(examined: Examined) -> Iterator[Finding]:
    for node, facts in examined.facts():
        host = facts.host
        value = f"{host.load:.1f}"
        if host.load > LOAD_PER_CPU * host.cpus:
            yield warn(
                node,
                value,
                f"a load of {host.load:.1f} on {host.cpus} processors: something else is at work",
                f"on {node}: `ps -eo pid,user,pcpu,args --sort=-pcpu | head` names it",
            )
        else:
            yield ok(node, value)


CHECK = Check("load", About.HOST, find)
