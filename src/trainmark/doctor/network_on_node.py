"""Interfaces, addresses and ports of one node, and which of them its ranks would use.

Sent to the node with `on_node.py`: standard library only.
"""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import asdict
from pathlib import Path
from typing import Any

from trainmark.system.network.addresses import ipv4_addresses, ipv6_addresses, ssh_address
from trainmark.system.network.fabric import read_interfaces
from trainmark.system.reading import file_text


def interfaces() -> list[dict[str, Any]]:
    """Return every interface with its addresses, IPv4 first."""
    fours, sixes = ipv4_addresses(), ipv6_addresses()
    return [
        {**asdict(one), "addresses": [*filter(None, [fours.get(one.name)]), *sixes.get(one.name, [])]}
        for one in read_interfaces()
    ]


def chosen_interface(
    network: list[dict[str, Any]], name: str | None, address: str | None, default: str | None
) -> dict[str, Any] | None:
    """Return the interface named, else that of the address, of the default route, or any with an address."""
    if name:
        return next((one for one in network if one["name"] == name), None)
    addressed = [one for one in network if one["addresses"]]
    candidates = [
        *(one for one in network if address in one["addresses"]),
        *(one for one in network if one["name"] == default),
        *(one for one in addressed if one["name"] != "lo"),
        *addressed,
    ]
    return next(iter(candidates), None)


def resolved(name: str | None) -> str | None:
    """Return the address of a host name; None where it is only this machine's name for itself (127.0.1.1)."""
    try:
        address = str(socket.getaddrinfo(name, None)[0][4][0]) if name else None
    except OSError:
        return None
    return None if address and address != name and ipaddress.ip_address(address).is_loopback else address


def reached_at(network: list[dict[str, Any]]) -> str | None:
    """Return the address at which ssh reached this node, if it is its own: the peers reach it there too."""
    own = [address for one in network if one["name"] != "lo" for address in one["addresses"]]
    address = ssh_address()
    return address if address in own else None


def default_interface() -> str | None:
    """Return the interface of the default route."""
    rows = [line.split() for line in (file_text(Path("/proc/net/route")) or "").splitlines()[1:]]
    return next((row[0] for row in rows if len(row) > 7 and row[1] == row[7] == "00000000"), None)


def is_free(address: str | None, port: int) -> bool | None:
    """Return whether nobody listens there; None where the address is not this node's."""
    if address is None or not _can_bind(address, 0):
        return None
    return _can_bind(address, port)


def _can_bind(address: str, port: int) -> bool:
    """Bind and let go: nothing listens, and what another one listens on cannot be bound."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError:
            return False
    return True


def port_range() -> list[int] | None:
    """Return the first and the last port that the kernel gives out."""
    words = (file_text(Path("/proc/sys/net/ipv4/ip_local_port_range")) or "").split()
    return [int(words[0]), int(words[1])] if len(words) == 2 else None
