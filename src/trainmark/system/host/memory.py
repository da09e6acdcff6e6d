"""Memory of the machine."""

from __future__ import annotations

import os
import re
from pathlib import Path

from trainmark.system.reading import file_text

ENTRY = re.compile(r"(\S+):\s*(\d+) kB")


def meminfo(path: Path = Path("/proc/meminfo")) -> dict[str, int]:
    """Return what a file such as /proc/meminfo counts, in bytes; empty where there is none."""
    return {name: int(kibibytes) * 1024 for name, kibibytes in ENTRY.findall(file_text(path) or "")}


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
