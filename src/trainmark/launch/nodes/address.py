"""The address by which the other nodes find a node, and the interface that has it."""

from __future__ import annotations

import contextlib
import itertools
import socket
from collections.abc import Mapping
from typing import Any

from trainmark.launch.nodes.node import Node, NodeError


def address_of(node: Node, hello: Mapping[str, Any], interface: str | None) -> tuple[str, str]:
    """The address that the others find it by, and its interface: what was named, else how it was reached."""
    own: dict[str, str] = hello["addresses"]
    if wanted := node.interface or interface:
        if wanted not in own:
            raise NodeError(
                node.name, f"it has no interface '{wanted}' with an address; it has {_listed(own)}"
            )
        return own[wanted], wanted
    by_address = {address: name for name, address in own.items() if not address.startswith("127.")}
    if node.address is not None:
        address = _resolved(node.address)
        if address not in by_address:
            raise NodeError(node.name, f"{node.address} is not one of its addresses: {_listed(own)}")
        return address, by_address[address]
    # One after the other: a name server is not asked a thousand times for what is known already.
    names = (node.name.rpartition("@")[2], hello["host"])
    for guess in itertools.chain((hello["reached_at"],), map(_resolved, names)):
        if guess in by_address:
            return guess, by_address[guess]
    if len(by_address) == 1:
        return next(iter(by_address.items()))
    raise NodeError(node.name, f"it has several addresses ({_listed(own)}); name one with --interface")


def _resolved(name: str) -> str | None:
    with contextlib.suppress(OSError, UnicodeError):
        return socket.gethostbyname(name)
    return None


def _listed(own: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {address}" for name, address in own.items()) or "none"
