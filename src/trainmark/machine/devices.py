"""GPUs as NVML describes them, the devices a workload may use, and the vendors' peaks."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from trainmark.machine.cpu import cpu_quota, memory_limit
from trainmark.machine.process_tree import visible_indices
from trainmark.machine.reading import command_output, memory_total


class NoDriverError(Exception):
    """There is no NVIDIA driver to ask; the message says which part is missing."""


@contextmanager
def nvml_session(module: Any = None) -> Iterator[Any]:
    """NVML, initialised; `module` stands in for pynvml where a test has its own."""
    nvml = module or _pynvml()
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        raise NoDriverError(f"no NVIDIA driver found ({error})") from error
    try:
        yield nvml
    finally:
        nvml_call(nvml, "nvmlShutdown")


def _pynvml() -> Any:
    try:
        import pynvml
    except ImportError as error:
        raise NoDriverError("pynvml is not installed: pip install nvidia-ml-py") from error
    return pynvml


def nvml_call(nvml: Any, function: str, *arguments: Any) -> Any:
    """The answer, or None: cards and drivers refuse what they do not support."""
    try:
        return getattr(nvml, function)(*arguments)
    except nvml.NVMLError:
        return None


def device_handles(nvml: Any) -> dict[int, Any]:
    """A handle for each GPU that answers, by NVML's index (the order on the PCI bus)."""
    handles = {
        index: nvml_call(nvml, "nvmlDeviceGetHandleByIndex", index)
        for index in range(nvml_call(nvml, "nvmlDeviceGetCount") or 0)
    }
    return {index: handle for index, handle in handles.items() if handle is not None}


TERMINAL_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Device:
    """One GPU; whatever the card or its driver does not tell is None."""

    index: int
    name: str | None
    uuid: str | None
    memory_bytes: int | None
    pci_bus: str | None
    pcie: str | None
    compute_capability: str | None
    power_limit_watts: float | None
    max_sm_clock_mhz: int | None
    max_memory_clock_mhz: int | None
    mig: bool | None
    ecc: bool | None
    persistence: bool | None


@dataclass(frozen=True)
class Devices:
    """The GPUs and their driver; `missing` says why there are none."""

    driver: str | None
    cuda_driver: str | None
    gpus: tuple[Device, ...]
    missing: str | None


def read_devices(module: Any = None) -> Devices:
    """Describe every GPU of the machine, whatever CUDA_VISIBLE_DEVICES says."""
    try:
        with nvml_session(module) as nvml:
            gpus = tuple(_device(nvml, index, handle) for index, handle in device_handles(nvml).items())
            return Devices(
                driver=nvml_call(nvml, "nvmlSystemGetDriverVersion"),
                cuda_driver=_cuda_version(nvml_call(nvml, "nvmlSystemGetCudaDriverVersion_v2")),
                gpus=gpus,
                missing=None if gpus else "the NVIDIA driver lists no GPU",
            )
    except NoDriverError as error:
        return Devices(driver=None, cuda_driver=None, gpus=(), missing=str(error))


def read_topology() -> str | None:
    """The matrix of `nvidia-smi topo -m`: which GPUs share a switch, a socket or an NVLink."""
    text = command_output("nvidia-smi", "topo", "-m")
    return TERMINAL_COLOUR.sub("", text) if text else None


def _device(nvml: Any, index: int, handle: Any) -> Device:
    def ask(function: str, *arguments: Any) -> Any:
        return nvml_call(nvml, function, handle, *arguments)

    memory = ask("nvmlDeviceGetMemoryInfo")
    bus = ask("nvmlDeviceGetPciInfo")
    capability = ask("nvmlDeviceGetCudaComputeCapability")
    milliwatts = ask("nvmlDeviceGetEnforcedPowerLimit")
    generation = ask("nvmlDeviceGetMaxPcieLinkGeneration")
    # The generation drops while a card idles but the width does not: a narrow one is a badly seated card.
    width = ask("nvmlDeviceGetCurrPcieLinkWidth")
    return Device(
        index=index,
        name=ask("nvmlDeviceGetName"),
        uuid=ask("nvmlDeviceGetUUID"),
        memory_bytes=int(memory.total) if memory else None,
        pci_bus=bus.busId if bus else None,
        pcie=f"gen{generation} x{width}" if generation and width else None,
        compute_capability="{}.{}".format(*capability) if capability else None,
        power_limit_watts=milliwatts / 1000 if milliwatts is not None else None,
        max_sm_clock_mhz=ask("nvmlDeviceGetMaxClockInfo", nvml.NVML_CLOCK_SM),
        max_memory_clock_mhz=ask("nvmlDeviceGetMaxClockInfo", nvml.NVML_CLOCK_MEM),
        mig=_current_mode(ask("nvmlDeviceGetMigMode")),
        ecc=_current_mode(ask("nvmlDeviceGetEccMode")),
        persistence=_is_on(ask("nvmlDeviceGetPersistenceMode")),
    )


def _current_mode(modes: Any) -> bool | None:
    """NVML answers with the present mode and the one after the next reset."""
    return None if modes is None else _is_on(modes[0])


def _is_on(mode: int | None) -> bool | None:
    return None if mode is None else bool(mode)


def _cuda_version(number: int | None) -> str | None:
    """NVML's 12040 is CUDA 12.4."""
    return f"{number // 1000}.{number % 1000 // 10}" if number else None


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
    uuids = {index: nvml_call(nvml, "nvmlDeviceGetUUID", handle) or "" for index, handle in handles.items()}
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
    memory = nvml_call(nvml, "nvmlDeviceGetMemoryInfo", handle)
    name = nvml_call(nvml, "nvmlDeviceGetName", handle) or "unnamed GPU"
    return CudaDevice(index, name, int(memory.total) if memory else None)
