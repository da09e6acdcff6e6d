"""Sampling of the devices while a trial runs, from the harness: the workload pays nothing for it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

from trainmark.events.schema import DeviceSample, throttle_names
from trainmark.events.stream import encode
from trainmark.machine.devices import NoDriverError, device_handles, nvml_call, nvml_session, visible_handles
from trainmark.machine.process_tree import ProcessTree, own_memory
from trainmark.machine.samples import CpuSampler


class GpuSampler:
    """Reads the GPUs whose handles it is given, each under its NVML index; made before a trial uses them."""

    def __init__(self, nvml: Any, handles: Mapping[int, Any], tree: ProcessTree) -> None:
        self._nvml = nvml
        self._handles = handles
        self._tree = tree
        self._clocks_max = {
            index: nvml_call(nvml, "nvmlDeviceGetMaxClockInfo", handle, nvml.NVML_CLOCK_SM)
            for index, handle in handles.items()
        }
        self._used_before = {index: self._used(handle) for index, handle in handles.items()}

    def sample(self) -> list[DeviceSample]:
        """A row for each GPU; the tree is taken as it was last refreshed."""
        return [self._row(index, handle) for index, handle in self._handles.items()]

    def _row(self, index: int, handle: Any) -> DeviceSample:
        def ask(function: str, *arguments: Any) -> Any:
            return nvml_call(self._nvml, function, handle, *arguments)

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
        memory = nvml_call(self._nvml, "nvmlDeviceGetMemoryInfo", handle)
        return int(memory.used) if memory else None


STOP_SECONDS = 1.0


class Sampler:
    """Appends a row for each GPU and one for the host to `path`, every `interval` seconds while it is open.

    Processes below `root_pid` (by default those below this one) are the trial's own; all others are foreign.
    `device_indices` are NVML's; by default every GPU that CUDA_VISIBLE_DEVICES leaves. What goes wrong ends
    the sampling and stands in `failure`; nothing is ever raised.
    """

    def __init__(
        self,
        path: Path,
        interval: float = 0.5,
        root_pid: int | None = None,
        device_indices: Sequence[int] | None = None,
        nvml_module: Any = None,
    ) -> None:
        self.failure: str | None = None
        self._path = path
        self._interval = interval
        self._tree = ProcessTree(os.getpid() if root_pid is None else root_pid)
        self._device_indices = device_indices
        self._nvml_module = nvml_module
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="device-sampler", daemon=True)

    def __enter__(self) -> Sampler:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        # A driver that hangs must not hold up the harness; the thread is a daemon and ends with it.
        self._thread.join(STOP_SECONDS)

    def _run(self) -> None:
        try:
            with self._path.open("a", encoding="utf-8") as file, ExitStack() as stack:
                cpu, gpus = CpuSampler(self._tree), self._open_gpus(stack)
                while not self._stopping.wait(self._interval):
                    rows = [cpu.sample(), *(gpus.sample() if gpus else [])]
                    file.writelines(encode(row) + "\n" for row in rows)
                    file.flush()
        except (OSError, ValueError) as error:
            self.failure = f"device sampling stopped: {error}"

    def _open_gpus(self, stack: ExitStack) -> GpuSampler | None:
        try:
            nvml = stack.enter_context(nvml_session(self._nvml_module))
        except NoDriverError:
            return None
        if self._device_indices is None:
            return GpuSampler(nvml, visible_handles(nvml), self._tree)
        handles = device_handles(nvml)
        return GpuSampler(nvml, {i: handles[i] for i in self._device_indices if i in handles}, self._tree)
