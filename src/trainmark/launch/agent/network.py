"""Ports that are free on an address of this node."""

from __future__ import annotations

import contextlib
import socket


def free_ports(address: str, count: int) -> list[int]:
    """Return as many free ports; all are bound at once, so that no two are the same."""
    with contextlib.ExitStack() as bound:
        probes = [bound.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind((address, 0))
        return [int(probe.getsockname()[1]) for probe in probes]
