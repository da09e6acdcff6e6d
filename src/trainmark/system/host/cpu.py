"""Model and clock governor of the processors."""

from __future__ import annotations

import platform
import re
from pathlib import Path

from trainmark.system.host.arm import arm_name
from trainmark.system.reading import command_output, file_text, folder_entries

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
