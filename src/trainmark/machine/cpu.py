"""Processors: model and clock governor, and the control group's limits on them and on memory.

Arm kernels print numbers in place of a model's name, those of the Main ID Register (MIDR_EL1): the
implementer, and the part as it numbers it.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator
from pathlib import Path

from trainmark.machine.reading import command_output, file_number, file_text, folder_entries

ARM, CAVIUM, FUJITSU, HISILICON, NVIDIA, QUALCOMM, APPLE, AMPERE = (
    *(0x41, 0x43, 0x46, 0x48),
    *(0x4E, 0x51, 0x61, 0xC0),
)
PARTS: dict[tuple[int, int], str] = {
    (ARM, 0xD03): "Cortex-A53",
    (ARM, 0xD04): "Cortex-A35",
    (ARM, 0xD05): "Cortex-A55",
    (ARM, 0xD07): "Cortex-A57",
    (ARM, 0xD08): "Cortex-A72",
    (ARM, 0xD09): "Cortex-A73",
    (ARM, 0xD0A): "Cortex-A75",
    (ARM, 0xD0B): "Cortex-A76",
    (ARM, 0xD0C): "Neoverse-N1",
    (ARM, 0xD0D): "Cortex-A77",
    (ARM, 0xD40): "Neoverse-V1",
    (ARM, 0xD41): "Cortex-A78",
    (ARM, 0xD42): "Cortex-A78AE",
    (ARM, 0xD44): "Cortex-X1",
    (ARM, 0xD46): "Cortex-A510",
    (ARM, 0xD47): "Cortex-A710",
    (ARM, 0xD48): "Cortex-X2",
    (ARM, 0xD49): "Neoverse-N2",
    (ARM, 0xD4A): "Neoverse-E1",
    (ARM, 0xD4B): "Cortex-A78C",
    (ARM, 0xD4D): "Cortex-A715",
    (ARM, 0xD4E): "Cortex-X3",
    (ARM, 0xD4F): "Neoverse-V2",
    (ARM, 0xD80): "Cortex-A520",
    (ARM, 0xD81): "Cortex-A720",
    (ARM, 0xD82): "Cortex-X4",
    (ARM, 0xD83): "Neoverse-V3AE",
    (ARM, 0xD84): "Neoverse-V3",
    (ARM, 0xD85): "Cortex-X925",
    (ARM, 0xD87): "Cortex-A725",
    (ARM, 0xD8E): "Neoverse-N3",
    (CAVIUM, 0x0A1): "ThunderX",
    (CAVIUM, 0x0AF): "ThunderX2",
    (FUJITSU, 0x001): "A64FX",
    (HISILICON, 0xD01): "Kunpeng 920",
    (NVIDIA, 0x004): "Carmel",
    (QUALCOMM, 0xC00): "Falkor",
    (QUALCOMM, 0x001): "Oryon",
    (APPLE, 0x022): "Apple M1 Icestorm",
    (APPLE, 0x023): "Apple M1 Firestorm",
    (APPLE, 0x032): "Apple M2 Blizzard",
    (APPLE, 0x033): "Apple M2 Avalanche",
    (AMPERE, 0xAC3): "Ampere-1",
    (AMPERE, 0xAC4): "Ampere-1A",
}


def arm_name(implementer: str, part: str) -> str:
    """Return `Neoverse-N1` for `0x41` and `0xd0c`; of a part that is not known here, its numbers."""
    numbered = f"Arm implementer {implementer} part {part}"
    try:
        return PARTS.get((int(implementer, 16), int(part, 16)), numbered)
    except ValueError:
        return numbered


CPUS = "sys/devices/system/cpu"


def cpu_folders(root: Path = Path("/")) -> list[Path]:
    """Return the folder of each logical processor."""
    return [folder for folder in folder_entries(root / CPUS) if re.fullmatch(r"cpu\d+", folder.name)]


def cpu_governor(root: Path = Path("/")) -> str | None:
    """Return the clock governor; all of them where the processors have different ones."""
    governors = {file_text(folder / "cpufreq/scaling_governor") for folder in cpu_folders(root)}
    return ", ".join(sorted(filter(None, governors))) or None


def cpu_model(root: Path = Path("/")) -> str | None:
    """Return the name of the processor model."""
    cpuinfo = file_text(root / "proc/cpuinfo")
    if cpuinfo is None:
        return command_output("sysctl", "-n", "machdep.cpu.brand_string") or platform.processor() or None
    name = re.search(r"^model name\s*:\s*(.+)", cpuinfo, re.MULTILINE)
    if name:
        return re.sub(r"\s+", " ", name[1]).strip()
    # Arm kernels print numbers in place of a name.
    implementer = re.search(r"^CPU implementer\s*:\s*(\S+)", cpuinfo, re.MULTILINE)
    part = re.search(r"^CPU part\s*:\s*(\S+)", cpuinfo, re.MULTILINE)
    return arm_name(implementer[1], part[1]) if implementer and part else None


# Version 1 writes a number near 2**63 for "no limit".
UNLIMITED_BYTES = 1 << 60


def cpu_quota(root: Path = Path("/")) -> float | None:
    """Processors' worth of time this process may use; None where it may use all."""
    quotas = []
    for folder in _cgroup_folders(root, "cpu"):
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
        for folder in _cgroup_folders(root, "memory")
        for name in ("memory.max", "memory.limit_in_bytes")
        if (limit := file_number(folder / name)) is not None and limit < UNLIMITED_BYTES
    ]
    return min(limits, default=None)


def _cgroup_folders(root: Path, controller: str) -> Iterator[Path]:
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
