"""Facts as a healthy node with two GPUs and InfiniBand tells them, to be changed one at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from trainmark.machine.diagnosis import diagnose
from trainmark.machine.examination import (
    ClockOffset,
    DiskSpace,
    Examination,
    ExaminedNode,
    Gpu,
    Interpreter,
    NodeCall,
    NodeDataset,
    NodeFacts,
    NodeHost,
    NodeInstallation,
    NodeInterface,
    ResourceLimit,
    Wanted,
)
from trainmark.machine.findings import GIB, FindingMark, NodeFinding
from trainmark.machine.network import InfinibandPort

PYTHON = "/opt/env/bin/python"
WANTED = Wanted(interpreters=(Interpreter("pytorch", PYTHON, "trainmark frameworks install pytorch"),))
GPU = Gpu(
    index="0", name="Tesla V100-SXM2-16GB", uuid="GPU-0", driver="535.183.01",
    memory_used_mib=4.0, memory_total_mib=16384.0, temperature=38.0,
    clock_mhz=135.0, clock_max_mhz=1530.0, clock_set_mhz=1290.0, memory_clock_set_mhz=877.0,
    power_limit_w=300.0,
    persistence="Enabled", ecc="Enabled", ecc_errors=0.0, throttle="0x0000000000000001",
)  # fmt: skip
ENVIRONMENT = NodeInstallation("3.11.7", {"torch": "2.13.0", "numpy": "2.2.0"}, "0123456789abcdef")
ETH0 = NodeInterface("eth0", "up", speed_mbps=100_000, mtu=9000, physical=True, addresses=("10.0.0.1",))
PORT = InfinibandPort(
    "mlx5_0", "MT4115", "12.28.2006", 1, "ACTIVE", "LinkUp", "100 Gb/sec (4X EDR)", "InfiniBand"
)
HOST = NodeHost(
    name="n1", kernel="6.1.0", machine="x86_64", python="3.11.7", cpus=48, cpu_quota=None,
    governor="performance", load=0.1, memory_total=376 * GIB, memory_available=370 * GIB, memory_limit=None,
)  # fmt: skip
FACTS = NodeFacts(
    host=HOST,
    interpreters={PYTHON: ENVIRONMENT},
    gpus=(GPU, replace(GPU, index="1", uuid="GPU-1")),
    gpu_processes=(),
    gpu_trouble=None,
    gpu_cards=2,
    shared_memory=DiskSpace("/dev/shm", 188 * GIB, 188 * GIB),
    scratch=DiskSpace("/tmp", 900 * GIB, 500 * GIB),
    open_files=ResourceLimit(65536, 65536),
    locked_memory=ResourceLimit(None, None),
    address="10.0.0.1",
    interface=ETH0,
    infiniband=(PORT,),
    ports={29500: True, 29501: True},
    port_range=(32768, 60999),
    dataset=NodeDataset("/data", True, 10, 10 * GIB, "aaaa", None),
)


def findings(
    *nodes: NodeFacts | ExaminedNode | None, calls: tuple[NodeCall, ...] = (), **wanted: Any
) -> list[NodeFinding]:
    """What all checks find in nodes n1, n2, … that told this; None did not answer."""
    named = tuple(_node(f"n{number}", answer) for number, answer in enumerate(nodes, 1))
    return list(diagnose(Examination(replace(WANTED, **wanted), named, calls)).findings)


def troubles(*nodes: NodeFacts | ExaminedNode | None, **more: Any) -> list[NodeFinding]:
    return [finding for finding in findings(*nodes, **more) if finding.mark is not FindingMark.OK]


def _node(name: str, answer: NodeFacts | ExaminedNode | None) -> ExaminedNode:
    if isinstance(answer, ExaminedNode):
        return replace(answer, name=name)
    if answer is None:
        return ExaminedNode(name, "did not answer within 60 s")
    return ExaminedNode(name, None, answer, ClockOffset(0.0, 0.05), {})
