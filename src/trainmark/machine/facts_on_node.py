"""Facts of one node: sent with what it imports, run by that node's Python (3.8 or newer).

The question is one JSON object on standard input, the answer one on standard output. It reads and never
changes anything; what cannot be known is null. Standard library only.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import resource
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from trainmark.machine.cpu import cpu_governor, cpu_model, cpu_quota, memory_limit
from trainmark.machine.network import (
    addressed_interfaces,
    chosen_interface,
    default_interface,
    is_free,
    port_range,
    read_infiniband,
    resolved_address,
    ssh_reached_address,
)
from trainmark.machine.nvidia_smi import Query, number
from trainmark.machine.reading import file_text, folder_entries, meminfo, package_name

# Below what a node has for all its answers; on a laden machine a Python takes many seconds to start.
PYTHON_SECONDS = 45.0
# What an interpreter is asked: its version, and where it looks for packages.
ABOUT_PYTHON = """
import json, sys
print(json.dumps([".".join(map(str, sys.version_info[:3])), [path for path in sys.path if path]]))
"""
# How an installer works, not what it installed: these lines of a RECORD differ between equal environments.
NOT_CONTENT = re.compile(
    r"^\.\./|\.pyc,|\.dist-info/(INSTALLER|REQUESTED|RECORD|direct_url\.json|uv_cache\.json),"
)


class SlowInterpreterError(Exception):
    """It is there, but what it holds cannot be told: who takes it for absent sends gigabytes in its place."""


def read_installation(path: str, limit: float = PYTHON_SECONDS) -> dict[str, Any] | None:
    """Return version, packages and hash; None where no Python is there. No package is imported."""
    command = [str(Path(path).expanduser()), "-I", "-c", ABOUT_PYTHON]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=limit)
        version, folders = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        raise SlowInterpreterError(f"{path} did not answer within {limit:.0f} s") from None
    except (OSError, ValueError):
        return None
    packages, digest = installed_packages(version, folders)
    return {"version": version, "packages": packages, "hash": digest}


def installed_packages(version: str, folders: Iterable[str]) -> tuple[dict[str, str], str]:
    """Return each package's version, and one hash over the Python version and the contents of all RECORDs."""
    packages: dict[str, str] = {}
    records = []
    for folder in folders:
        for info in sorted(Path(folder).glob("*.dist-info")):
            name, _, release = info.name[: -len(".dist-info")].rpartition("-")
            name = package_name(name)
            if name in packages:
                continue  # hidden by an earlier folder
            packages[name] = release
            lines = (file_text(info / "RECORD") or "").splitlines()
            content = sorted(line for line in lines if not NOT_CONTENT.search(line))
            records.append("\n".join([f"{name} {release}", *content]))
    everything = "\n".join([version, *sorted(records)])
    return packages, hashlib.sha256(everything.encode("utf-8", "replace")).hexdigest()[:16]


TEXT_FACTS = "index name uuid driver persistence ecc mig throttle"
NUMBER_FACTS = (
    "memory_used_mib memory_total_mib temperature clock_mhz clock_max_mhz clock_set_mhz memory_clock_set_mhz"
    " power_limit_w ecc_errors"
)
NVIDIA_VENDOR = "0x10de"
DISPLAY_CLASSES = ("0x0300", "0x0302")


def main() -> None:
    began = time.time()
    if platform.system() != "Linux":
        sys.exit(f"it runs {platform.system()}, and only Linux can be examined")
    question = json.load(sys.stdin)
    network = addressed_interfaces()
    named = question.get("interface")
    address = None if named else resolved_address(question.get("address")) or ssh_reached_address(network)
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
        return {path: read_installation(path) for path in paths}
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
    gpus, trouble = Query("gpu", f"{TEXT_FACTS} {NUMBER_FACTS}").once()
    if trouble:
        return [], [], trouble
    processes, trouble = Query("compute-apps", "uuid pid memory_mib name").once()
    for process in processes:
        # The arguments of somebody's program are not ours to carry home.
        process["name"] = process.get("name", "").partition(" ")[0]
    return [typed(row) for row in gpus], [typed(row) for row in processes], trouble


def typed(row: dict[str, str]) -> dict[str, Any]:
    return {name: value if name in TEXT_FACTS.split() else number(value) for name, value in row.items()}


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
