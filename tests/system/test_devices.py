from __future__ import annotations

import os
from pathlib import Path

import pytest

from trainmark.machine.devices import Device, read_devices, read_topology


def test_a_gpu_is_described_in_whole(nvml):
    devices = read_devices(nvml)
    assert (devices.driver, devices.cuda_driver, devices.missing) == ("440.33.01", "10.2", None)
    assert devices.gpus[1] == Device(
        index=1,
        name="Tesla V100-SXM2-16GB",
        uuid="GPU-1f00",
        memory_bytes=16 << 30,
        pci_bus="0000:11:00.0",
        pcie="gen3 x16",
        compute_capability="7.0",
        power_limit_watts=300.0,
        max_sm_clock_mhz=1530,
        max_memory_clock_mhz=877,
        mig=None,
        ecc=True,
        persistence=False,
    )


def test_what_a_card_does_not_support_is_none_and_the_rest_stays(nvml):
    nvml.unsupported |= {"nvmlDeviceGetMemoryInfo", "nvmlDeviceGetEccMode", "nvmlDeviceGetEnforcedPowerLimit"}
    gpu = read_devices(nvml).gpus[0]
    assert (gpu.memory_bytes, gpu.ecc, gpu.power_limit_watts) == (None, None, None)
    assert gpu.name == "Tesla V100-SXM2-16GB"


def test_a_machine_without_a_driver_says_so(nvml):
    nvml.unsupported = {"nvmlInit"}
    devices = read_devices(nvml)
    assert devices.gpus == ()
    assert devices.missing is not None and devices.missing.startswith("no NVIDIA driver found")


def test_the_topology_matrix_comes_without_terminal_colours(tmp_path, monkeypatch):
    program = tmp_path / "nvidia-smi"
    program.write_text(
        '#!/bin/sh\n[ "$*" = "topo -m" ] && printf "\\t\\033[4mGPU0\\tGPU1\\033[0m\\nGPU0\\t X \\tNV1\\n"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert read_topology() == "\tGPU0\tGPU1\nGPU0\t X \tNV1"


def test_without_nvidia_smi_there_is_no_topology(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert read_topology() is None
