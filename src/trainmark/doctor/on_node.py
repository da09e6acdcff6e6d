"""The facts of one node: sent with what it imports, run by that node's Python (3.8 or newer).

The question is one JSON object on standard input, the answer one on standard output. It reads and never
changes anything; what cannot be known is null. Standard library only.
"""

from __future__ import annotations

import json
import os
import platform
import resource
import shutil
import socket
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from trainmark.doctor.network_on_node import (
    chosen_interface,
    default_interface,
    interfaces,
    is_free,
    port_range,
    reached_at,
    resolved,
)
from trainmark.system.gpu.nvidia_smi import THROTTLE, Query, number
from trainmark.system.host.cgroup import cpu_quota, memory_limit
from trainmark.system.host.cpu import cpu_governor, cpu_model
from trainmark.system.host.memory import meminfo
from trainmark.system.network.fabric import read_infiniband
from trainmark.system.reading import file_text, folder_entries
from trainmark.system.software.installed import SlowInterpreterError, interpreter

GPU_FIELDS = {
    "index": "index",
    "name": "name",
    "uuid": "uuid",
    "driver_version": "driver",
    "memory.used": "memory_used_mib",
    "memory.total": "memory_total_mib",
    "temperature.gpu": "temperature",
    "clocks.sm": "clock_mhz",
    "clocks.max.sm": "clock_max_mhz",
    "clocks.applications.graphics": "clock_set_mhz",
    "clocks.applications.memory": "memory_clock_set_mhz",
    "power.limit": "power_limit_w",
    "persistence_mode": "persistence",
    "ecc.mode.current": "ecc",
    "ecc.errors.uncorrected.volatile.total": "ecc_errors",
    "mig.mode.current": "mig",
    **THROTTLE,
}
# The name comes last: it alone may have a comma in it.
PROCESS_FIELDS = {"gpu_uuid": "uuid", "pid": "pid", "used_memory": "memory_mib", "process_name": "name"}
TEXTS = {"index", "name", "uuid", "driver", "persistence", "ecc", "mig", "throttle"}
NVIDIA_VENDOR = "0x10de"
DISPLAY_CLASSES = ("0x0300", "0x0302")


def main() -> None:
    began = time.time()
    if platform.system() != "Linux":
        sys.exit(f"it runs {platform.system()}, and only Linux can be examined")
    question = json.load(sys.stdin)
    network = interfaces()
    named = question.get("interface")
    address = None if named else resolved(question.get("address")) or reached_at(network)
    used = chosen_interface(network, named, address, default_interface())
    address = address or next(iter(used["addresses"] if used else []), None)
    gpus, processes, trouble = nvidia()
    answer = {
        "host": host(),
        "interpreters": interpreters(question.get("interpreters", [])),
        "gpus": gpus,
        "gpu_processes": processes,
        "gpu_trouble": trouble,
        "gpu_cards": nvidia_cards(),
        "shared_memory": space("/dev/shm"),
        "scratch": space(question.get("scratch") or "/tmp"),
        "limits": {
            "open_files": limit(resource.RLIMIT_NOFILE),
            "locked_memory": limit(resource.RLIMIT_MEMLOCK),
        },
        "address": address,
        "interface": used and used["name"],
        "interfaces": network,
        "infiniband": [asdict(port) for port in read_infiniband()],
        "ports": {str(port): is_free(address, port) for port in question.get("ports", [])},
        "port_range": port_range(),
    }
    # The home machine tells the offset of the clocks from these two and its own two.
    answer["began"], answer["ended"] = began, time.time()
    print(json.dumps(answer))


def interpreters(paths: list[str]) -> dict[str, Any]:
    try:
        return {path: interpreter(path) for path in paths}
    except SlowInterpreterError as slow:
        sys.exit(str(slow))


def host() -> dict[str, Any]:
    """Return what the machine is and how much of it this process may use."""
    memory = meminfo()
    return {
        "name": socket.gethostname(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "cpus": len(os.sched_getaffinity(0)),
        "cpu_quota": cpu_quota(),
        "governor": cpu_governor(),
        "load": os.getloadavg()[0],
        "memory_total": memory.get("MemTotal"),
        "memory_available": memory.get("MemAvailable"),
        "memory_limit": memory_limit(),
        "processor": cpu_model(),
    }


def nvidia() -> tuple[list[dict[str, Any]], list[dict[str, Any]], str | None]:
    """Return the GPUs, the processes on them, and the error of nvidia-smi where it failed."""
    gpus, trouble = Query("gpu", GPU_FIELDS).once()
    if trouble:
        return [], [], trouble
    processes, trouble = Query("compute-apps", PROCESS_FIELDS).once()
    for process in processes:
        # The arguments of somebody's program are not ours to carry home.
        process["name"] = process.get("name", "").partition(" ")[0]
    return [typed(row) for row in gpus], [typed(row) for row in processes], trouble


def typed(row: dict[str, str]) -> dict[str, Any]:
    return {name: value if name in TEXTS else number(value) for name, value in row.items()}


def nvidia_cards(root: Path = Path("/")) -> int:
    """Count NVIDIA's GPUs on the PCI bus, whether or not a driver answers for them."""
    return sum(
        file_text(device / "vendor") == NVIDIA_VENDOR
        and (file_text(device / "class") or "")[:6] in DISPLAY_CLASSES
        for device in folder_entries(root / "sys/bus/pci/devices")
    )


def space(path: str) -> dict[str, Any]:
    """Return the size of a file system and what is free on it."""
    try:
        total, _, free = shutil.disk_usage(path)
    except OSError:
        return {"path": path, "total": None, "free": None}
    return {"path": path, "total": total, "free": free}


def limit(which: int) -> list[int | None]:
    """Return a resource limit, soft and hard; None is unlimited."""
    return [None if value == resource.RLIM_INFINITY else value for value in resource.getrlimit(which)]
