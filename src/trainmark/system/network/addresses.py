"""IP addresses of this machine's interfaces."""

from __future__ import annotations

import fcntl
import os
import socket
import struct
from pathlib import Path

from trainmark.system.reading import file_text

SIOCGIFADDR = 0x8915


def ipv4_address(interface: str) -> str | None:
    """Return the first IPv4 address of an interface."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        try:
            request = struct.pack("256s", interface.encode()[:15])
            answer = fcntl.ioctl(any_socket.fileno(), SIOCGIFADDR, request)
        except OSError:
            return None
    return socket.inet_ntoa(answer[20:24])


def ipv4_addresses() -> dict[str, str]:
    """Return the IPv4 address of each interface that has one."""
    addresses = {name: ipv4_address(name) for _, name in socket.if_nameindex()}
    return {name: address for name, address in addresses.items() if address is not None}


def ipv6_addresses(root: Path = Path("/")) -> dict[str, list[str]]:
    """Return the IPv6 addresses of each interface that a peer can use: none that is link-local."""
    addresses: dict[str, list[str]] = {}
    for line in (file_text(root / "proc/net/if_inet6") or "").splitlines():
        digits, _, _, _, _, name = line.split()
        if not digits.startswith("fe80"):
            address = socket.inet_ntop(socket.AF_INET6, bytes.fromhex(digits))
            addresses.setdefault(name, []).append(address)
    return addresses


def ssh_address() -> str | None:
    """Return the address by which ssh came here: right even where the host's name means nothing to others."""
    words = os.environ.get("SSH_CONNECTION", "").split()
    return words[2] if len(words) == 4 else None
