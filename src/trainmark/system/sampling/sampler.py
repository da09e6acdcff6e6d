"""Watching the devices while a trial runs, from the harness, so that the workload pays nothing for it."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

from trainmark.events.stream import encode
from trainmark.system.available import visible_handles
from trainmark.system.gpu.nvml import NoDriverError, device_handles, nvml_session
from trainmark.system.sampling.cpu_sample import CpuSampler
from trainmark.system.sampling.gpu_sample import GpuSampler
from trainmark.system.sampling.process_tree import ProcessTree

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
