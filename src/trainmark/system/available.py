"""What a workload could use on this machine, and the most its devices could do."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from trainmark.system.gpu.nvml import NoDriverError, asked, device_handles, nvml_session
from trainmark.system.gpu.visible_devices import visible_indices
from trainmark.system.host.cgroup import cpu_quota, memory_limit
from trainmark.system.host.memory import memory_total

PEAKS = Path(__file__).with_name("peaks.yaml")
# Mixed precision multiplies in half precision.
PRECISION_ALIASES = {"amp": "fp16"}


@dataclass(frozen=True)
class CudaDevice:
    """One GPU a workload would see; `index` is NVML's, which CUDA_VISIBLE_DEVICES does not renumber."""

    index: int
    name: str
    memory_bytes: int | None


@dataclass(frozen=True)
class Inventory:
    """The GPUs a workload would see, in its order, and the processors and memory it may use."""

    cuda: tuple[CudaDevice, ...]
    cpu_cores: float
    memory_bytes: int | None

    @property
    def kind(self) -> str:
        return "cuda" if self.cuda else "cpu"


def local_devices(
    module: Any = None, variables: Mapping[str, str] = os.environ, root: Path = Path("/")
) -> Inventory:
    """Count what this process may use, within its affinity, its group's limits and CUDA_VISIBLE_DEVICES."""
    limits = [limit for limit in (memory_total(root), memory_limit(root)) if limit is not None]
    return Inventory(_cuda_devices(module, variables), usable_cores(root), min(limits, default=None))


def usable_cores(root: Path = Path("/")) -> float:
    """Processors this process may run on; a fraction where the quota of its group grants one."""
    # macOS has no affinity to ask for.
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(float(allowed), cpu_quota(root) or float(allowed))


def visible_handles(nvml: Any, variables: Mapping[str, str] = os.environ) -> dict[int, Any]:
    """NVML's handles of the GPUs that CUDA would show, by NVML's index and in the variable's order.

    CUDA puts the fastest card first unless CUDA_DEVICE_ORDER is PCI_BUS_ID; NVML always goes by the bus.
    Where all cards are of one kind, as in most machines that are measured, the two agree.
    """
    handles = device_handles(nvml)
    uuids = {index: asked(nvml, "nvmlDeviceGetUUID", handle) or "" for index, handle in handles.items()}
    return {index: handles[index] for index in visible_indices(variables.get("CUDA_VISIBLE_DEVICES"), uuids)}


def known_peak_flops(device_name: str, precision: str) -> float | None:
    """The vendor's dense peak in FLOP/s for `fp32`, `tf32`, `fp16`, `amp` or `bf16`; None where unknown."""
    wanted = PRECISION_ALIASES.get(precision, precision)
    for entry in _peaks():
        if re.fullmatch(entry["name"], device_name):
            teraflops = entry.get(wanted)
            return None if teraflops is None else float(teraflops) * 1e12
    return None


@dataclass(frozen=True)
class Datasheet:
    """A device as its vendor describes it: dense FLOP/s by precision, and bytes/s of its memory."""

    title: str
    flops: Mapping[str, float]
    bandwidth: float


def datasheets() -> tuple[Datasheet, ...]:
    """Return every device that is known."""
    return tuple(_datasheet(entry) for entry in _peaks())


def known_datasheet(device_name: str) -> Datasheet | None:
    entries = (entry for entry in _peaks() if re.fullmatch(entry["name"], device_name))
    return next(map(_datasheet, entries), None)


def _datasheet(entry: Mapping[str, Any]) -> Datasheet:
    about = ("name", "title", "source", "bandwidth")
    flops = {key: float(value) * 1e12 for key, value in entry.items() if key not in about}
    return Datasheet(entry["title"], flops, float(entry["bandwidth"]) * 1e9)


@cache
def _peaks() -> list[dict[str, Any]]:
    import yaml

    entries: list[dict[str, Any]] = yaml.safe_load(PEAKS.read_text(encoding="utf-8"))
    return entries


def _cuda_devices(module: Any, variables: Mapping[str, str]) -> tuple[CudaDevice, ...]:
    try:
        with nvml_session(module) as nvml:
            return tuple(
                _cuda_device(nvml, index, handle)
                for index, handle in visible_handles(nvml, variables).items()
            )
    except NoDriverError:
        return ()


def _cuda_device(nvml: Any, index: int, handle: Any) -> CudaDevice:
    memory = asked(nvml, "nvmlDeviceGetMemoryInfo", handle)
    name = asked(nvml, "nvmlDeviceGetName", handle) or "unnamed GPU"
    return CudaDevice(index, name, int(memory.total) if memory else None)
