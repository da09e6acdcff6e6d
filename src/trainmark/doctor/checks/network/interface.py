"""Whether the interface that the ranks will use is up, and of the same MTU and speed on every node."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from trainmark.doctor.examined import Examined, most_common
from trainmark.doctor.facts import Interface
from trainmark.doctor.finding import About, Check, Finding, bad, ok


def find(examined: Examined) -> Iterator[Finding]:
    interfaces = {name: facts.interface for name, facts in examined.facts()}
    usual_mtu = most_common({name: own.mtu for name, own in interfaces.items() if own})
    usual_speed = most_common({name: own.speed_mbps for name, own in interfaces.items() if own})
    for node, own in interfaces.items():
        asked = examined.wanted.interfaces.get(node)
        if own is None:
            yield bad(
                node,
                "none",
                f"there is no interface {asked}" if asked else "it has no network interface",
                f"on {node}: `ip -brief address` names those there are; give one with --interface",
            )
        else:
            yield from _of(node, own, usual_mtu, usual_speed)


def _of(node: str, own: Interface, usual_mtu: int | None, usual_speed: int | None) -> Iterator[Finding]:
    value = ", ".join(filter(None, [own.name, f"MTU {own.mtu}", _speed(own.speed_mbps)]))
    name = shlex.quote(own.name)
    healthy = True
    if own.state in ("down", "lowerlayerdown") or not own.addresses:
        healthy = False
        lacks = "is down" if own.addresses else "has no address"
        yield bad(node, value, f"{own.name} {lacks}", f"on {node}: `sudo ip link set dev {name} up`")
    if own.mtu != usual_mtu:
        healthy = False
        yield bad(
            node,
            value,
            f"{own.name} has an MTU of {own.mtu}, on the others {usual_mtu}: large messages may get lost",
            f"on {node}: `sudo ip link set dev {name} mtu {usual_mtu}`",
        )
    if own.speed_mbps != usual_speed:
        healthy = False
        yield bad(
            node,
            value,
            f"{own.name} runs at {_speed(own.speed_mbps) or 'a speed not told'}, "
            f"the others' at {_speed(usual_speed) or 'a speed not told'}",
            f"on {node}: look at cable and switch port; `sudo ethtool {name}`",
        )
    if healthy:
        yield ok(node, value)


def _speed(mbps: int | None) -> str:
    return f"{mbps / 1000:g} Gb/s" if mbps else ""


CHECK = Check("interface", About.NETWORK, find)
