"""InfiniBand ports and interfaces, and which interface, address and ports the ranks of a node would use.

Sent to nodes with `facts_on_node.py`: standard library only.
"""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from trainmark.machine.reading import (
    file_number,
    file_text,
    folder_entries,
    ipv4_addresses,
    ipv6_addresses,
    ssh_address,
)


@dataclass(frozen=True)
class InfinibandPort:
    """One port of a host adapter; `rate` is the kernel's text, such as `100 Gb/sec (4X EDR)`."""

    device: str
    board: str | None
    firmware: str | None
    port: int
    state: str | None
    physical_state: str | None
    rate: str | None
    link_layer: str | None


@dataclass(frozen=True)
class Interface:
    """One network interface; `physical` tells a card from a bridge, a tunnel or a virtual pair."""

    name: str
    state: str | None
    speed_mbps: int | None
    mtu: int | None
    physical: bool


@dataclass(frozen=True)
class MachineFabric:
    """All ports and interfaces; None where the machine has none of a kind."""

    infiniband: tuple[InfinibandPort, ...] | None
    interfaces: tuple[Interface, ...] | None


def read_fabric(root: Path = Path("/")) -> MachineFabric:
    """Describe the network from /sys/class below `root`; the loopback is left out."""
    interfaces = [interface for interface in read_interfaces(root) if interface.name != "lo"]
    return MachineFabric(tuple(read_infiniband(root)) or None, tuple(interfaces) or None)


def read_infiniband(root: Path = Path("/")) -> list[InfinibandPort]:
    """Return every port of every host adapter."""
    return [
        _port(device, port)
        for device in folder_entries(root / "sys/class/infiniband")
        for port in folder_entries(device / "ports")
    ]


def read_interfaces(root: Path = Path("/")) -> list[Interface]:
    """Return every network interface, the loopback included."""
    return [_interface(folder) for folder in folder_entries(root / "sys/class/net") if folder.is_dir()]


def _port(device: Path, port: Path) -> InfinibandPort:
    return InfinibandPort(
        device=device.name,
        board=file_text(device / "hca_type"),
        firmware=file_text(device / "fw_ver"),
        port=int(port.name),
        state=_state_name(port / "state"),
        physical_state=_state_name(port / "phys_state"),
        rate=file_text(port / "rate"),
        link_layer=file_text(port / "link_layer"),
    )


def _state_name(path: Path) -> str | None:
    """The kernel writes `4: ACTIVE`; the number says nothing more."""
    text = file_text(path)
    return text.split(": ")[-1] if text else None


def _interface(folder: Path) -> Interface:
    speed = file_number(folder / "speed")
    return Interface(
        name=folder.name,
        state=file_text(folder / "operstate"),
        speed_mbps=speed if speed and speed > 0 else None,
        mtu=file_number(folder / "mtu"),
        physical=(folder / "device").exists(),
    )


def addressed_interfaces() -> list[dict[str, Any]]:
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


def resolved_address(name: str | None) -> str | None:
    """Return the address of a host name; None where it is only this machine's name for itself (127.0.1.1)."""
    try:
        address = str(socket.getaddrinfo(name, None)[0][4][0]) if name else None
    except OSError:
        return None
    return None if address and address != name and ipaddress.ip_address(address).is_loopback else address


def ssh_reached_address(network: list[dict[str, Any]]) -> str | None:
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
