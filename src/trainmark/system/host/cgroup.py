"""The limits that a container or a batch system puts on this process, in either version of control groups."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from trainmark.system.reading import file_number, file_text

# Version 1 writes a number near 2**63 for "no limit".
UNLIMITED_BYTES = 1 << 60


def cpu_quota(root: Path = Path("/")) -> float | None:
    """Processors' worth of time this process may use; None where it may use all."""
    quotas = []
    for folder in _folders(root, "cpu"):
        allowed, _, period = (file_text(folder / "cpu.max") or "").partition(" ")
        if allowed.isdecimal() and period.isdecimal():
            quotas.append(int(allowed) / int(period))
        quota, length = file_number(folder / "cpu.cfs_quota_us"), file_number(folder / "cpu.cfs_period_us")
        if quota and length and quota > 0:
            quotas.append(quota / length)
    return min(quotas, default=None)


def memory_limit(root: Path = Path("/")) -> int | None:
    """Bytes this process and its neighbours in the group may use; None where there is no limit."""
    limits = [
        limit
        for folder in _folders(root, "memory")
        for name in ("memory.max", "memory.limit_in_bytes")
        if (limit := file_number(folder / name)) is not None and limit < UNLIMITED_BYTES
    ]
    return min(limits, default=None)


def _folders(root: Path, controller: str) -> Iterator[Path]:
    """This process's group and all above it, for a limit on any of them binds."""
    mount = root / "sys/fs/cgroup"
    for line in (file_text(root / "proc/self/cgroup") or "").splitlines():
        _, controllers, name = line.split(":", 2)
        if controllers == "":
            base = mount
        elif controller in controllers.split(","):
            base = mount / controller
        else:
            continue
        group = base / name.lstrip("/")
        while group != base:
            yield group
            group = group.parent
        yield base
