"""One row about each GPU, as NVML tells it from outside the workload."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from trainmark.events.schema import DeviceSample, throttle_names
from trainmark.system.gpu.nvml import asked
from trainmark.system.sampling.own_memory import own_memory
from trainmark.system.sampling.process_tree import ProcessTree


class GpuSampler:
    """Reads the GPUs whose handles it is given, each under its NVML index; made before a trial uses them."""

    def __init__(self, nvml: Any, handles: Mapping[int, Any], tree: ProcessTree) -> None:
        self._nvml = nvml
        self._handles = handles
        self._tree = tree
        self._clocks_max = {
            index: asked(nvml, "nvmlDeviceGetMaxClockInfo", handle, nvml.NVML_CLOCK_SM)
            for index, handle in handles.items()
        }
        self._used_before = {index: self._used(handle) for index, handle in handles.items()}

    def sample(self) -> list[DeviceSample]:
        """A row for each GPU; the tree is taken as it was last refreshed."""
        return [self._row(index, handle) for index, handle in self._handles.items()]

    def _row(self, index: int, handle: Any) -> DeviceSample:
        def ask(function: str, *arguments: Any) -> Any:
            return asked(self._nvml, function, handle, *arguments)

        rates = ask("nvmlDeviceGetUtilizationRates")
        used = self._used(handle)
        milliwatts = ask("nvmlDeviceGetPowerUsage")
        processes = ask("nvmlDeviceGetComputeRunningProcesses") or []
        return DeviceSample(
            device=f"cuda:{index}",
            mono=time.monotonic(),
            wall=time.time(),
            utilisation=rates.gpu / 100 if rates else None,
            memory_bytes=used,
            power_watts=milliwatts / 1000 if milliwatts is not None else None,
            temperature_c=ask("nvmlDeviceGetTemperature", self._nvml.NVML_TEMPERATURE_GPU),
            clock_mhz=ask("nvmlDeviceGetClockInfo", self._nvml.NVML_CLOCK_SM),
            clock_max_mhz=self._clocks_max[index],
            throttle=throttle_names(ask("nvmlDeviceGetCurrentClocksThrottleReasons")),
            foreign_processes=self._tree.count_others(process.pid for process in processes),
            own_memory_bytes=own_memory(
                {process.pid: process.usedGpuMemory for process in processes},
                self._tree,
                used,
                self._used_before[index],
            ),
        )

    def _used(self, handle: Any) -> int | None:
        memory = asked(self._nvml, "nvmlDeviceGetMemoryInfo", handle)
        return int(memory.used) if memory else None
