"""Whether the ports at which the ranks will meet are free."""

from __future__ import annotations

from collections.abc import Iterator

from trainmark.doctor.examined import Examined
from trainmark.doctor.facts import Facts
from trainmark.doctor.finding import About, Check, Finding, bad, ok, warn
from trainmark.doctor.limits import PORT_RANGE


def find(examined: Examined) -> Iterator[Finding]:
    for node, facts in examined.facts():
        yield from _of(node, facts)


def _of(node: str, facts: Facts) -> Iterator[Finding]:
    if not facts.ports:
        return
    free = [port for port, is_free in facts.ports.items() if is_free]
    taken = [port for port, is_free in facts.ports.items() if is_free is False]
    value = f"{len(free)} of {len(facts.ports)}"
    if any(is_free is None for is_free in facts.ports.values()):
        yield bad(
            node,
            "not told",
            f"its address {facts.address} is not one that it has itself",
            f"on {node}: `ip -brief address` names its addresses; give one of them in the inventory",
        )
    elif taken:
        names = ", ".join(map(str, taken))
        say = warn if free else bad
        yield say(
            node,
            value,
            f"taken on {facts.address}: {names}",
            f"on {node}: `sudo ss -ltnp 'sport = :{taken[0]}'` names by whom; or give others with --ports",
        )
    elif facts.port_range and facts.port_range[1] - facts.port_range[0] < PORT_RANGE:
        low, high = facts.port_range
        yield warn(
            node,
            value,
            f"only ports {low} to {high} are for outgoing connections",
            f"on {node}: `sudo sysctl net.ipv4.ip_local_port_range='32768 60999'`",
        )
    else:
        yield ok(node, value)


CHECK = Check("free ports", About.NETWORK, find)
