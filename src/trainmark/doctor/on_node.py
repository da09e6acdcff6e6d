"""The facts of one node: sent as text, run by that node's Python (3.8 or newer), standard library only.

The question is one JSON object on standard input, the answer one on standard output. It reads and never
changes anything; what cannot be known is null.
"""

from __future__ import annotations

import fcntl
import hashlib
import ipaddress
import json
import os
import platform
import re
import resource
import shutil
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

SIOCGIFADDR = 0x8915
SMI_SECONDS = 30
PYTHON_SECONDS = 20
# What an interpreter is asked: its version, and where it looks for packages.
ABOUT_PYTHON = """
import json, sys
print(json.dumps([".".join(map(str, sys.version_info[:3])), [path for path in sys.path if path]]))
"""
NOT_A_FIELD = re.compile(r'Field "([^"]+)" is not a valid field')
# Both names of a field that was renamed; the driver that does not know one is asked again without it.
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
    "clocks_throttle_reasons.active": "throttle",
    "clocks_event_reasons.active": "throttle",
}
GPU_NUMBERS = {
    "memory_used_mib", "memory_total_mib", "temperature", "clock_mhz", "clock_max_mhz", "clock_set_mhz",
    "memory_clock_set_mhz", "power_limit_w", "ecc_errors",
}  # fmt: skip
# The name comes last: it alone may have a comma in it.
PROCESS_FIELDS = {"gpu_uuid": "uuid", "pid": "pid", "used_memory": "memory_mib", "process_name": "name"}
PROCESS_NUMBERS = {"pid", "memory_mib"}
NVIDIA_VENDOR = "0x10de"
DISPLAY_CLASSES = ("0x0300", "0x0302")
# How an installer works, not what it installed: these lines of a RECORD differ between equal environments.
NOT_CONTENT = re.compile(
    r"^\.\./|\.pyc,|\.dist-info/(INSTALLER|REQUESTED|RECORD|direct_url\.json|uv_cache\.json),"
)
# Version 1 of control groups writes a number near 2**63 for "no limit".
UNLIMITED_BYTES = 1 << 60


def main() -> None:
    began = time.time()
    if platform.system() != "Linux":
        sys.exit(f"it runs {platform.system()}, and only Linux can be examined")
    asked = json.load(sys.stdin)
    network = interfaces()
    named = asked.get("interface")
    address = None if named else resolved(asked.get("address")) or reached_at(network)
    used = chosen_interface(network, named, address, default_interface())
    address = address or first(used["addresses"] if used else [])
    gpus, processes, trouble = nvidia()
    answer = {
        "host": host(),
        "interpreters": {path: interpreter(path) for path in asked.get("interpreters", [])},
        "gpus": gpus,
        "gpu_processes": processes,
        "gpu_trouble": trouble,
        "gpu_cards": nvidia_cards(Path("/sys/bus/pci/devices")),
        "shared_memory": space("/dev/shm"),
        "scratch": space(asked.get("scratch") or "/tmp"),
        "limits": {
            "open_files": limit(resource.RLIMIT_NOFILE),
            "locked_memory": limit(resource.RLIMIT_MEMLOCK),
        },
        "address": address,
        "interface": used and used["name"],
        "interfaces": network,
        "infiniband": infiniband(Path("/sys/class/infiniband")),
        "ports": {str(port): is_free(address, port) for port in asked.get("ports", [])},
        "port_range": port_range(),
    }
    # The home machine tells the offset of the clocks from these two and its own two.
    answer["began"], answer["ended"] = began, time.time()
    print(json.dumps(answer))


def host() -> dict[str, Any]:
    memory = meminfo(text(Path("/proc/meminfo")) or "")
    return {
        "name": socket.gethostname(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "cpus": len(os.sched_getaffinity(0)),
        "cpu_quota": smallest(cpu_quotas()),
        "governor": text(Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")),
        "load": os.getloadavg()[0],
        "memory_total": memory.get("MemTotal"),
        "memory_available": memory.get("MemAvailable"),
        "memory_limit": smallest(memory_limits()),
        "processor": processor(text(Path("/proc/cpuinfo")) or ""),
    }


def processor(said: str) -> str | None:
    """The model's name; an ARM kernel tells only numbers."""
    rows = [line.partition(":") for line in said.splitlines()]
    names = [value.strip() for key, _, value in rows if key.strip() in ("model name", "CPU part")]
    return names[0] if names else None


def meminfo(said: str) -> dict[str, int]:
    """`MemTotal:  16316412 kB` in bytes."""
    rows = (line.split() for line in said.splitlines())
    return {row[0].rstrip(":"): int(row[1]) * 1024 for row in rows if len(row) == 3 and row[2] == "kB"}


def cpu_quotas() -> Iterator[float]:
    for folder in control_groups("cpu"):
        allowed, _, period = (text(folder / "cpu.max") or "").partition(" ")
        if allowed.isdigit() and period.isdigit():
            yield int(allowed) / int(period)
        quota, length = number(folder / "cpu.cfs_quota_us"), number(folder / "cpu.cfs_period_us")
        if quota and length and quota > 0:
            yield quota / length


def memory_limits() -> Iterator[int]:
    for folder in control_groups("memory"):
        for name in ("memory.max", "memory.limit_in_bytes"):
            limited = number(folder / name)
            if limited is not None and limited < UNLIMITED_BYTES:
                yield limited


def control_groups(controller: str) -> Iterator[Path]:
    """This process's group and all above it, in either version: a limit on any of them binds."""
    mount = Path("/sys/fs/cgroup")
    for line in (text(Path("/proc/self/cgroup")) or "").splitlines():
        _, controllers, name = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        base = mount / controller if controllers else mount
        group = base / name.lstrip("/")
        yield group
        yield from (above for above in group.parents if above == base or base in above.parents)


def interpreter(path: str) -> dict[str, Any] | None:
    """None where no Python answers there; the packages are read off their metadata, none is imported."""
    command = [str(Path(path).expanduser()), "-I", "-c", ABOUT_PYTHON]
    said = output(command, PYTHON_SECONDS)
    try:
        version, folders = json.loads(said or "")
    except ValueError:
        return None
    packages, digest = installed(version, folders)
    return {"version": version, "packages": packages, "hash": digest}


def installed(version: str, folders: Iterable[str]) -> tuple[dict[str, str], str]:
    """Each package with its version, and one hash over the Python version and the contents of all RECORDs."""
    packages: dict[str, str] = {}
    records = []
    for folder in folders:
        for info in sorted(Path(folder).glob("*.dist-info")):
            name, _, release = info.name[: -len(".dist-info")].rpartition("-")
            name = re.sub(r"[-_.]+", "-", name).lower()
            if name in packages:
                continue  # hidden by an earlier folder
            packages[name] = release
            lines = (text(info / "RECORD") or "").splitlines()
            content = sorted(line for line in lines if not NOT_CONTENT.search(line))
            records.append("\n".join([f"{name} {release}", *content]))
    whole = "\n".join([version, *sorted(records)])
    return packages, hashlib.sha256(whole.encode("utf-8", "replace")).hexdigest()[:16]


def nvidia() -> tuple[list[dict[str, Any]], list[dict[str, Any]], str | None]:
    """GPUs, the processes on them, and what nvidia-smi said where it could not tell."""
    smi = shutil.which("nvidia-smi")
    if smi is None:
        return [], [], None
    gpus, trouble = query(smi, "gpu", GPU_FIELDS)
    if trouble:
        return [], [], trouble
    processes, trouble = query(smi, "compute-apps", PROCESS_FIELDS)
    for process in processes:
        # The arguments of somebody's program are not ours to carry home.
        process["name"] = process.get("name", "").partition(" ")[0]
    return typed(gpus, GPU_NUMBERS), typed(processes, PROCESS_NUMBERS), trouble


def query(smi: str, what: str, fields: dict[str, str]) -> tuple[list[dict[str, str]], str | None]:
    wanted = list(fields)
    while True:
        command = [smi, f"--query-{what}={','.join(wanted)}", "--format=csv,noheader,nounits"]
        try:
            done = subprocess.run(
                command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SMI_SECONDS
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return [], str(error)
        said = done.stdout.decode(errors="replace")
        unknown = NOT_A_FIELD.search(said)
        if unknown and unknown.group(1) in wanted:
            wanted.remove(unknown.group(1))
        elif done.returncode:
            return [], " ".join(said.split()) or f"nvidia-smi left with {done.returncode}"
        else:
            return rows(said, [fields[name] for name in wanted]), None


def rows(said: str, names: list[str]) -> list[dict[str, str]]:
    """The CSV of nvidia-smi; `[N/A]`, `[Not Supported]` and their kin are left out."""
    found = []
    for line in said.splitlines():
        values = line.split(", ", len(names) - 1)
        if len(values) == len(names):
            told = ((name, known(value)) for name, value in zip(names, values))  # noqa: B905 (Python 3.8)
            found.append({name: value for name, value in told if value is not None})
    return found


def known(value: str) -> str | None:
    value = value.strip()
    told = value and not re.match(r"\[.*\]$|N/A$|Unknown|Requested functionality", value)
    return value if told else None


def typed(found: list[dict[str, Any]], numbers: set[str]) -> list[dict[str, Any]]:
    for row in found:
        for name in numbers & set(row):
            row[name] = as_number(row[name])
    return found


def as_number(value: str) -> float | None:
    try:
        return float(value)
    except ValueError:
        return None


def nvidia_cards(devices: Path) -> int:
    """GPUs of NVIDIA on the bus, whether or not a driver answers for them."""
    return sum(
        text(device / "vendor") == NVIDIA_VENDOR and (text(device / "class") or "")[:6] in DISPLAY_CLASSES
        for device in entries(devices)
    )


def space(path: str) -> dict[str, Any]:
    try:
        total, _, free = shutil.disk_usage(path)
    except OSError:
        return {"path": path, "total": None, "free": None}
    return {"path": path, "total": total, "free": free}


def limit(which: int) -> list[int | None]:
    """Soft and hard; None is unlimited."""
    return [None if value == resource.RLIM_INFINITY else value for value in resource.getrlimit(which)]


def interfaces() -> list[dict[str, Any]]:
    sixes = ipv6_addresses(text(Path("/proc/net/if_inet6")) or "")
    return [
        {
            "name": folder.name,
            "state": text(folder / "operstate"),
            "mtu": number(folder / "mtu"),
            # A link that is down says -1 or refuses to be read.
            "speed_mbps": positive(number(folder / "speed")),
            "addresses": list(filter(None, [ipv4_address(folder.name)])) + sixes.get(folder.name, []),
        }
        for folder in entries(Path("/sys/class/net"))
        if (folder / "mtu").exists()
    ]


def ipv4_address(name: str) -> str | None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        try:
            told = fcntl.ioctl(asked.fileno(), SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
        except OSError:
            return None
    return socket.inet_ntoa(told[20:24])


def ipv6_addresses(said: str) -> dict[str, list[str]]:
    """Those that a peer can use: what is valid on one link only is left out."""
    found: dict[str, list[str]] = {}
    for line in said.splitlines():
        digits, _, _, _, _, name = line.split()
        if not digits.startswith("fe80"):
            address = socket.inet_ntop(socket.AF_INET6, bytes.fromhex(digits))
            found.setdefault(name, []).append(address)
    return found


def chosen_interface(
    network: list[dict[str, Any]], name: str | None, address: str | None, default: str | None
) -> dict[str, Any] | None:
    """The one named, else the one that has the address, else the default route's, else any that is up."""
    if name:
        return next((one for one in network if one["name"] == name), None)
    having = next((one for one in network if address in one["addresses"]), None)
    routed = next((one for one in network if one["name"] == default), None)
    up = [one for one in network if one["addresses"] and one["name"] != "lo"]
    return having or routed or first(up) or next((one for one in network if one["addresses"]), None)


def resolved(name: str | None) -> str | None:
    """The address of a host name; none where it is only this machine's name for itself (127.0.1.1)."""
    try:
        found = str(socket.getaddrinfo(name, None)[0][4][0]) if name else None
    except OSError:
        return None
    return None if found and found != name and ipaddress.ip_address(found).is_loopback else found


def reached_at(network: list[dict[str, Any]]) -> str | None:
    """The address at which ssh found this node: the peers will find it there too."""
    connection = os.environ.get("SSH_CONNECTION", "").split()
    own = [address for one in network if one["name"] != "lo" for address in one["addresses"]]
    return connection[2] if len(connection) == 4 and connection[2] in own else None


def default_interface() -> str | None:
    rows = [line.split() for line in (text(Path("/proc/net/route")) or "").splitlines()[1:]]
    return next((row[0] for row in rows if len(row) > 7 and row[1] == row[7] == "00000000"), None)


def infiniband(folder: Path) -> list[dict[str, Any]]:
    return [
        {
            "device": device.name,
            "port": int(port.name),
            "state": (text(port / "state") or "").split(": ")[-1] or None,
            "rate": text(port / "rate"),
            "link_layer": text(port / "link_layer"),
        }
        for device in entries(folder)
        for port in entries(device / "ports")
    ]


def is_free(address: str | None, port: int) -> bool | None:
    """None where the address is not this node's, so that nothing can be said of its ports."""
    if address is None:
        return None
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((address, 0))
        except OSError:
            return None
    with socket.socket(family, socket.SOCK_STREAM) as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            # Bound and let go: nothing listens, and what another one listens on cannot be bound.
            tried.bind((address, port))
        except OSError:
            return False
    return True


def port_range() -> list[int] | None:
    said = (text(Path("/proc/sys/net/ipv4/ip_local_port_range")) or "").split()
    return [int(said[0]), int(said[1])] if len(said) == 2 else None


def output(command: list[str], seconds: float) -> str | None:
    try:
        done = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
            timeout=seconds,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode(errors="replace") if done.returncode == 0 else None


def text(path: Path) -> str | None:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return None


def number(path: Path) -> int | None:
    try:
        return int(text(path) or "")
    except ValueError:
        return None


def positive(value: int | None) -> int | None:
    return value if value and value > 0 else None


def entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def first(values: Iterable[Any]) -> Any:
    return next(iter(values), None)


def smallest(values: Iterable[Any]) -> Any:
    return min(values, default=None)


if __name__ == "__main__":
    main()
