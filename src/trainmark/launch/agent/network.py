"""The addresses of this node, and ports that are free on one of them."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import struct

SIOCGIFADDR = 0x8915


def addresses() -> dict[str, str]:
    """Interface → its IPv4 address."""
    found = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for _, name in socket.if_nameindex():
            with contextlib.suppress(OSError):
                asked = struct.pack("256s", name.encode()[:15])
                answer = fcntl.ioctl(any_socket.fileno(), SIOCGIFADDR, asked)
                found[name] = socket.inet_ntoa(answer[20:24])
    return found


def reached_at() -> str | None:
    """The address by which ssh came here: right even where the host's name means nothing to us."""
    words = os.environ.get("SSH_CONNECTION", "").split()
    return words[2] if len(words) == 4 else None


def free_ports(address: str, count: int) -> list[int]:
    """All held at once, so that no two are the same."""
    with contextlib.ExitStack() as held:
        probes = [held.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind((address, 0))
        return [int(probe.getsockname()[1]) for probe in probes]
