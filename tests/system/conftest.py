"""A small NVML that answers as the real one does, and fake /sys and /proc trees."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest


class NVMLError(Exception):
    pass


class FakeNvml:
    """Two V100s; what is in `unsupported` fails as it does on an older card."""

    NVMLError = NVMLError
    NVML_CLOCK_SM = 1
    NVML_CLOCK_MEM = 2
    NVML_TEMPERATURE_GPU = 0

    def __init__(self) -> None:
        self.unsupported = {"nvmlDeviceGetMigMode"}
        self.pids: list[int] = []
        self.process_bytes: int | None = 1 << 30
        self.used = 3 << 30
        self.throttle_bits = 0
        self._answers: dict[str, Callable[..., Any]] = {
            "nvmlInit": lambda: None,
            "nvmlShutdown": lambda: None,
            "nvmlSystemGetDriverVersion": lambda: "440.33.01",
            "nvmlSystemGetCudaDriverVersion_v2": lambda: 10020,
            "nvmlDeviceGetCount": lambda: 2,
            "nvmlDeviceGetHandleByIndex": lambda index: index,
            "nvmlDeviceGetName": lambda handle: "Tesla V100-SXM2-16GB",
            "nvmlDeviceGetUUID": lambda handle: f"GPU-{handle}f00",
            "nvmlDeviceGetMemoryInfo": lambda handle: SimpleNamespace(total=16 << 30, used=self.used),
            "nvmlDeviceGetPciInfo": lambda handle: SimpleNamespace(busId=f"0000:1{handle}:00.0"),
            "nvmlDeviceGetCudaComputeCapability": lambda handle: (7, 0),
            "nvmlDeviceGetEnforcedPowerLimit": lambda handle: 300_000,
            "nvmlDeviceGetMaxPcieLinkGeneration": lambda handle: 3,
            "nvmlDeviceGetCurrPcieLinkWidth": lambda handle: 16,
            "nvmlDeviceGetMaxClockInfo": lambda handle, clock: {1: 1530, 2: 877}[clock],
            "nvmlDeviceGetEccMode": lambda handle: [1, 0],
            "nvmlDeviceGetPersistenceMode": lambda handle: 0,
            "nvmlDeviceGetUtilizationRates": lambda handle: SimpleNamespace(gpu=93, memory=40),
            "nvmlDeviceGetPowerUsage": lambda handle: 287_500,
            "nvmlDeviceGetTemperature": lambda handle, sensor: 61,
            "nvmlDeviceGetClockInfo": lambda handle, clock: 1455,
            "nvmlDeviceGetCurrentClocksThrottleReasons": lambda handle: self.throttle_bits,
            "nvmlDeviceGetComputeRunningProcesses": lambda handle: [
                SimpleNamespace(pid=pid, usedGpuMemory=self.process_bytes) for pid in self.pids
            ],
        }

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return self._refuse if name in self.unsupported else self._answers[name]

    def _refuse(self, *_: Any) -> Any:
        raise NVMLError("Not Supported")


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> FakeNvml:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return FakeNvml()


@pytest.fixture
def plant(tmp_path: Path) -> Callable[[dict[str, str]], Path]:
    """Write files below a root that stands for `/`, and return that root."""

    def write(files: dict[str, str]) -> Path:
        for name, text in files.items():
            path = tmp_path / "root" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        (tmp_path / "root").mkdir(exist_ok=True)
        return tmp_path / "root"

    return write
