"""Whether the InfiniBand and RoCE ports are active, as many and as fast on every node."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from trainmark.doctor.examined import Examined, most_common
from trainmark.doctor.facts import Facts
from trainmark.doctor.finding import About, Check, Finding, bad, ok, warn
from trainmark.system.network.fabric import InfinibandPort

FIXES = {
    "INIT": "no subnet manager has seen it: `sudo systemctl start opensm` on one host of the fabric",
    "DOWN": "look at cable and switch port: `ibstat {device}`",
}


def find(examined: Examined) -> Iterator[Finding]:
    rates = examined.each(active_rates)
    usual = most_common(rates)
    for node, facts in examined.facts():
        own = rates[node]
        value = ", ".join(own) or ("none active" if facts.infiniband else "none")
        findings = [
            warn(
                node,
                value,
                f"{port.device} port {port.port} is {port.state or 'in an unknown state'}",
                f"on {node}: {_fix(port)}",
            )
            for port in facts.infiniband
            if port.state != "ACTIVE"
        ]
        if own != usual:
            findings.append(
                bad(
                    node,
                    value,
                    f"its active ports are {value}, the others' {', '.join(usual or ()) or 'none'}",
                    f"on {node}: `ibstat` shows state and rate of each port; look at cables and switch ports",
                )
            )
        yield from findings or [ok(node, value)]


def active_rates(facts: Facts) -> tuple[str, ...]:
    return tuple(sorted(port.rate or "rate not told" for port in facts.infiniband if port.state == "ACTIVE"))


def _fix(port: InfinibandPort) -> str:
    return FIXES.get(port.state or "", "`ibstat {device}`").format(device=shlex.quote(port.device))


CHECK = Check("InfiniBand", About.NETWORK, find)
