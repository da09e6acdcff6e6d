from __future__ import annotations

import os

import pytest

from trainmark.machine.cpu import cpu_quota, memory_limit
from trainmark.machine.devices import (
    CudaDevice,
    datasheets,
    known_datasheet,
    known_peak_flops,
    local_devices,
    usable_cores,
    visible_indices,
)

UUIDS = {0: "GPU-aa11", 1: "GPU-bb22", 2: "GPU-bb33"}


@pytest.mark.parametrize(
    ("visible", "indices"),
    [
        ("2,0", [2, 0]),
        ("", []),
        ("-1", []),
        ("0, 1", [0, 1]),
        ("0,7,1", [0]),
        ("GPU-aa", [0]),
        ("GPU-bb", []),
        ("GPU-bb33,GPU-aa11", [2, 0]),
        ("1,1", [1]),
    ],
)
def test_the_visible_devices_are_those_cuda_would_show(visible, indices):
    assert list(visible_indices(visible, UUIDS)) == indices


def test_a_machine_with_gpus_lists_those_that_are_visible(nvml):
    devices = local_devices(nvml, {"CUDA_VISIBLE_DEVICES": "1"})
    assert devices.kind == "cuda"
    assert devices.cuda == (CudaDevice(1, "Tesla V100-SXM2-16GB", 16 << 30),)


def test_a_machine_without_a_driver_offers_its_processors(nvml):
    nvml.unsupported = {"nvmlInit"}
    devices = local_devices(nvml, {})
    assert (devices.kind, devices.cuda) == ("cpu", ())
    assert devices.cpu_cores > 0 and devices.memory_bytes


def test_the_quota_of_a_group_above_binds(plant):
    root = plant(
        {
            "proc/self/cgroup": "0::/slice/job\n",
            "sys/fs/cgroup/slice/cpu.max": "150000 100000\n",
            "sys/fs/cgroup/slice/job/cpu.max": "max 100000\n",
            "sys/fs/cgroup/slice/memory.max": "max\n",
            "sys/fs/cgroup/slice/job/memory.max": "1048576\n",
        }
    )
    assert (cpu_quota(root), memory_limit(root)) == (1.5, 1 << 20)


def test_the_first_version_of_control_groups_is_read_too(plant):
    root = plant(
        {
            "proc/self/cgroup": "4:memory:/job\n1:cpu,cpuacct:/\n",
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "50000\n",
            "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/memory/job/memory.limit_in_bytes": "2097152\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
        }
    )
    assert (cpu_quota(root), memory_limit(root)) == (0.5, 2 << 20)


def test_without_a_quota_every_processor_of_the_affinity_counts(plant):
    assert usable_cores(plant({})) == len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("name", "precision", "flops"),
    [
        ("Tesla V100-SXM2-16GB", "amp", 125e12),
        ("Tesla V100-SXM2-32GB", "fp32", 15.7e12),
        ("Tesla V100-SXM2-16GB", "bf16", None),
        ("NVIDIA A100-SXM4-80GB", "tf32", 156e12),
        ("NVIDIA A100 80GB PCIe", "bf16", 312e12),
        ("NVIDIA H100 80GB HBM3", "fp16", 989.5e12),
        ("NVIDIA H200", "bf16", 989.5e12),
        ("NVIDIA GeForce RTX 4090", "fp32", 82.6e12),
        ("NVIDIA A100-SXM4-40GB", "int8", None),
    ],
)
def test_a_known_device_has_its_vendors_dense_peak(name, precision, flops):
    assert known_peak_flops(name, precision) == flops


@pytest.mark.parametrize(
    "name",
    [
        "NVIDIA A10G",
        "NVIDIA GeForce RTX 4090 D",
        "NVIDIA A100-SXM4-40GB MIG 1g.5gb",
        "NVIDIA H100 NVL",
        "cpu",
    ],
)
def test_a_device_that_only_looks_like_a_known_one_has_no_peak(name):
    assert known_peak_flops(name, "fp32") is None


def test_every_known_device_has_a_title_of_its_own_and_the_bandwidth_of_its_memory():
    sheets = datasheets()
    assert len({sheet.title for sheet in sheets}) == len(sheets)
    assert all(1e11 < sheet.bandwidth < 1e13 and sheet.flops["fp32"] > 1e12 for sheet in sheets)


@pytest.mark.parametrize(
    ("name", "bandwidth"),
    [("NVIDIA A100-SXM4-40GB", 1555e9), ("NVIDIA A100-SXM4-80GB", 2039e9), ("NVIDIA H200", 4800e9)],
)
def test_a_known_device_has_the_bandwidth_of_its_memory(name, bandwidth):
    assert known_datasheet(name).bandwidth == bandwidth
    assert known_datasheet(f"{name} MIG 1g.5gb") is None
