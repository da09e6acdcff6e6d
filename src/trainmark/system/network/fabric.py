"""What joins this machine to others: InfiniBand ports and network interfaces."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from trainmark.system.reading import file_number, file_text, folder_entries


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
class Fabric:
    """All ports and interfaces; None where the machine has none of a kind."""

    infiniband: tuple[InfinibandPort, ...] | None
    interfaces: tuple[Interface, ...] | None


def read_fabric(root: Path = Path("/")) -> Fabric:
    """Describe the network from /sys/class below `root`; the loopback is left out."""
    interfaces = [interface for interface in read_interfaces(root) if interface.name != "lo"]
    return Fabric(tuple(read_infiniband(root)) or None, tuple(interfaces) or None)


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
