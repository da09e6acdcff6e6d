"""The GPUs of this machine and how they are joined, as their driver describes them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from trainmark.system.gpu.nvml import NoDriverError, asked, device_handles, nvml_session
from trainmark.system.reading import command_output

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
                driver=asked(nvml, "nvmlSystemGetDriverVersion"),
                cuda_driver=_cuda_version(asked(nvml, "nvmlSystemGetCudaDriverVersion_v2")),
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
        return asked(nvml, function, handle, *arguments)

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
        mig=_current(ask("nvmlDeviceGetMigMode")),
        ecc=_current(ask("nvmlDeviceGetEccMode")),
        persistence=_switch(ask("nvmlDeviceGetPersistenceMode")),
    )


def _current(modes: Any) -> bool | None:
    """NVML answers with the present mode and the one after the next reset."""
    return None if modes is None else _switch(modes[0])


def _switch(mode: int | None) -> bool | None:
    return None if mode is None else bool(mode)


def _cuda_version(number: int | None) -> str | None:
    """NVML's 12040 is CUDA 12.4."""
    return f"{number // 1000}.{number % 1000 // 10}" if number else None
