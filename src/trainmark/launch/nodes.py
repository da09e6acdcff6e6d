"""A node: a machine that ranks can be placed on, and the address by which the other nodes find it."""

from __future__ import annotations

import contextlib
import itertools
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trainmark.base.errors import UserError

# Nothing that a shell or an option parser could take for something else.
HOST = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9._-]*@)?[A-Za-z0-9_\[][A-Za-z0-9._:\[\]-]*")
INTERFACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@:-]{0,14}")


@dataclass(frozen=True)
class Node:
    """`name` is how it is reached and called; what is None is found out from the node itself."""

    name: str
    address: str | None = None
    slots: int | None = None
    devices: tuple[int, ...] | None = None
    interface: str | None = None
    python: str = "python3"
    scratch: str | None = None
    labels: tuple[str, ...] = field(default=())

    @property
    def usual_address(self) -> str:
        """Where nobody can be asked: the one that was given, else the name it is reached by."""
        return self.address or self.name.rpartition("@")[2]

    def __post_init__(self) -> None:
        if not HOST.fullmatch(self.name):
            raise UserError(
                f"{self.name!r} cannot name a host; use letters, digits, '.', '-', '_', ':' and '@'."
            )
        if self.address is not None and not HOST.fullmatch(self.address):
            raise UserError(
                f"{self.address!r} is no address of {self.name}; give a host name or an IP address."
            )
        if self.interface is not None and not INTERFACE.fullmatch(self.interface):
            raise UserError(
                f"{self.interface!r} is no network interface; `ip link` on {self.name} lists them."
            )
        if self.python.startswith("-") or not self.python.isprintable():
            raise UserError(f"{self.python!r} is no Python of {self.name}; give its path.")


class NodeError(RuntimeError):
    """A node that cannot be used; the message is one sentence without the node's name."""

    def __init__(self, node: str, reason: str) -> None:
        super().__init__(reason)
        self.node = node
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.node}: {self.reason}"


def node_address(node: Node, hello: Mapping[str, Any], interface: str | None) -> tuple[str, str]:
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
