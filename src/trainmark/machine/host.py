"""Host: operating system, processors, memory, hypervisor, and the container around this process."""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trainmark.machine.cpu import CPUS, cpu_folders, cpu_governor, cpu_model
from trainmark.machine.reading import (
    command_output,
    file_number,
    file_text,
    folder_entries,
    meminfo,
    memory_total,
)

# The vendor a hypervisor writes into the firmware tables, and the name it is known by.
HYPERVISORS = {
    "QEMU": "kvm",
    "Amazon EC2": "aws-nitro",
    "Google": "google-compute-engine",
    "Microsoft Corporation": "hyper-v",
    "VMware, Inc.": "vmware",
    "Xen": "xen",
    "innotek GmbH": "virtualbox",
    "OpenStack Foundation": "openstack",
    "Alibaba Cloud": "alibaba-cloud",
}


@dataclass(frozen=True)
class Cpu:
    """The processors of the host; `turbo` says whether the clock may rise above its nominal rate."""

    model: str | None
    sockets: int | None
    cores: int | None
    threads: int | None
    governor: str | None
    turbo: bool | None


@dataclass(frozen=True)
class NumaNode:
    """One memory domain and the CPUs next to it, as the kernel lists them (`0-11,24-35`)."""

    node: int
    cpus: str | None
    memory_bytes: int | None


@dataclass(frozen=True)
class Host:
    """What the machine is, whatever runs on it; `virtualisation` is `none` on bare metal."""

    hostname: str
    system: str
    kernel: str
    architecture: str
    product: str | None
    virtualisation: str | None
    cpu: Cpu
    memory_bytes: int | None
    numa: tuple[NumaNode, ...] | None


def read_host(root: Path = Path("/")) -> Host:
    """Describe this machine; `root` is where /proc, /sys and /etc are found."""
    return Host(
        hostname=platform.node(),
        system=_system_name(root),
        kernel=f"{platform.system()} {platform.release()}",
        architecture=platform.machine(),
        product=file_text(root / "sys/class/dmi/id/product_name"),
        virtualisation=_virtualisation(root),
        cpu=_cpu(root),
        memory_bytes=memory_total(root),
        numa=_numa_nodes(root),
    )


def _system_name(root: Path) -> str:
    release = file_text(root / "etc/os-release") or ""
    match = re.search(r'^PRETTY_NAME="?([^"\n]+)', release, re.MULTILINE)
    if match:
        return match[1]
    if sys.platform == "darwin":
        return f"macOS {platform.mac_ver()[0]}"
    return platform.system()


def _cpu(root: Path) -> Cpu:
    folders = cpu_folders(root)
    packages = [file_number(folder / "topology/physical_package_id") for folder in folders]
    cores = [file_number(folder / "topology/core_id") for folder in folders]
    known = [pair for pair in zip(packages, cores, strict=True) if None not in pair]
    return Cpu(
        model=cpu_model(root),
        sockets=len({package for package, _ in known}) or None,
        cores=len(set(known)) or _physical_cores(root),
        threads=len(known) or os.cpu_count(),
        governor=cpu_governor(root),
        turbo=_turbo(root / CPUS),
    )


def _physical_cores(root: Path) -> int | None:
    """Count the cores of a machine whose /sys does not list them."""
    cpuinfo = file_text(root / "proc/cpuinfo")
    if cpuinfo is None:
        printed = command_output("sysctl", "-n", "hw.physicalcpu") or ""
        return int(printed) if printed.isdecimal() else None
    sockets = re.findall(r"^physical id\s*:\s*(\d+)$.*?^cpu cores\s*:\s*(\d+)$", cpuinfo, re.M | re.S)
    return sum(int(cores) for _, cores in set(sockets)) or None


def _turbo(cpus: Path) -> bool | None:
    barred = file_number(cpus / "intel_pstate/no_turbo")
    if barred is not None:
        return barred == 0
    boost = file_number(cpus / "cpufreq/boost")
    return None if boost is None else boost == 1


def _virtualisation(root: Path) -> str | None:
    cpuinfo = file_text(root / "proc/cpuinfo") or ""
    flags = re.search(r"^flags\s*:(.*)", cpuinfo, re.MULTILINE)
    vendor = file_text(root / "sys/class/dmi/id/sys_vendor")
    if flags is None:
        return HYPERVISORS.get(vendor or "")
    # Cloud vendors sign their bare-metal machines too; the processor's own flag decides.
    if "hypervisor" not in flags[1].split():
        return "none"
    return file_text(root / "sys/hypervisor/type") or HYPERVISORS.get(vendor or "", "unnamed hypervisor")


def _numa_nodes(root: Path) -> tuple[NumaNode, ...] | None:
    nodes = []
    for folder in folder_entries(root / "sys/devices/system/node"):
        if number := re.fullmatch(r"node(\d+)", folder.name):
            memory = meminfo(folder / "meminfo").get("MemTotal")
            nodes.append(NumaNode(int(number[1]), file_text(folder / "cpulist"), memory))
    return tuple(sorted(nodes, key=lambda node: node.node)) or None


# Nothing inside a Docker container knows its image's name, so whoever starts one may say it here.
IMAGE_VARIABLES = ("TRAINMARK_IMAGE", "APPTAINER_CONTAINER", "SINGULARITY_CONTAINER")


@dataclass(frozen=True)
class RunningContainer:
    """The kind of container (`docker`, `podman`, …) and the image it was started from."""

    kind: str
    image: str | None


def read_container(
    root: Path = Path("/"), variables: Mapping[str, str] = os.environ
) -> RunningContainer | None:
    """The container around this process; None outside of one."""
    kind = _container_kind(root, variables)
    if kind is None:
        return None
    candidates = (variables.get(name) for name in IMAGE_VARIABLES)
    return RunningContainer(
        kind, next(filter(None, candidates), None) or _podman_image(root) or _ngc_image(variables)
    )


def _container_kind(root: Path, variables: Mapping[str, str]) -> str | None:
    if "APPTAINER_CONTAINER" in variables or "SINGULARITY_CONTAINER" in variables:
        return "apptainer"
    if "KUBERNETES_SERVICE_HOST" in variables:
        return "kubernetes"
    if (root / "run/.containerenv").exists():
        return "podman"
    if (root / ".dockerenv").exists():
        return "docker"
    groups = file_text(root / "proc/1/cgroup") or ""
    match = re.search(r"docker|containerd|kubepods|lxc|enroot", groups)
    return match[0] if match else None


def _podman_image(root: Path) -> str | None:
    match = re.search(r'^image="([^"]+)"', file_text(root / "run/.containerenv") or "", re.MULTILINE)
    return match[1] if match else None


def _ngc_image(variables: Mapping[str, str]) -> str | None:
    """NVIDIA's framework images name product and release in variables of their own."""
    product = variables.get("NVIDIA_PRODUCT_NAME")
    release = variables.get(f"NVIDIA_{product.upper()}_VERSION") if product else None
    return f"NGC {product} {release}" if release else None
