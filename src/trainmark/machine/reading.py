"""Files, programs' output, memory and addresses of this machine; what cannot be read is None."""

from __future__ import annotations

import fcntl
import os
import re
import socket
import struct
import subprocess
from pathlib import Path

# Ends what hangs; on a laden machine a sound `git` was seen to need more than two seconds.
COMMAND_TIMEOUT_SECONDS = 10.0


def file_text(path: Path) -> str | None:
    """The file's text without surrounding white space; None where it is absent, unreadable or empty."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip() or None
    except OSError:
        return None


def file_number(path: Path) -> int | None:
    """The whole number that is all of the file, as most of /sys is written."""
    text = file_text(path)
    try:
        return int(text) if text else None
    except ValueError:
        return None


def folder_entries(path: Path) -> list[Path]:
    """The folder's entries by name; none where it is absent or closed to us."""
    try:
        return sorted(path.iterdir())
    except OSError:
        return []


def command_output(*command: str, timeout: float = COMMAND_TIMEOUT_SECONDS) -> str | None:
    """What the program printed; None where it is not installed, failed or took too long."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout,
            check=True,
            encoding="utf-8",
            errors="replace",
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.rstrip()


def package_name(text: str) -> str:
    """Return the one spelling of a distribution's name (PEP 503)."""
    return re.sub(r"[-_.]+", "-", text).lower()


MEMINFO_ENTRY = re.compile(r"(\S+):\s*(\d+) kB")


def meminfo(path: Path = Path("/proc/meminfo")) -> dict[str, int]:
    """Return what a file such as /proc/meminfo counts, in bytes; empty where there is none."""
    return {name: int(kibibytes) * 1024 for name, kibibytes in MEMINFO_ENTRY.findall(file_text(path) or "")}


def memory_total(root: Path = Path("/")) -> int | None:
    """Return the installed memory as the kernel sees it, in bytes."""
    total = meminfo(root / "proc/meminfo").get("MemTotal")
    if total is not None:
        return total
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return None


def memory_used(root: Path = Path("/")) -> int | None:
    """Return the bytes that a new program could not have without swapping."""
    counts = meminfo(root / "proc/meminfo")
    total, available = counts.get("MemTotal"), counts.get("MemAvailable")
    return None if total is None or available is None else total - available


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
