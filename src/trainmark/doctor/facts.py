"""What a node told, as it stood in the JSON of `on_node.py`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any

from trainmark.launch.asking import Reply
from trainmark.system.network import fabric
from trainmark.system.network.fabric import InfinibandPort


@dataclass(frozen=True)
class Host:
    name: str
    kernel: str
    machine: str
    python: str
    cpus: int
    cpu_quota: float | None
    governor: str | None
    load: float
    memory_total: int | None
    memory_available: int | None
    memory_limit: int | None
    processor: str | None = None


@dataclass(frozen=True)
class Installed:
    """One interpreter: its Python, its packages, and the hash of all their contents."""

    version: str
    packages: Mapping[str, str]
    hash: str


@dataclass(frozen=True)
class Gpu:
    """One row of nvidia-smi; None is what the device does not tell."""

    index: str
    name: str
    uuid: str | None = None
    driver: str | None = None
    memory_used_mib: float | None = None
    memory_total_mib: float | None = None
    temperature: float | None = None
    clock_mhz: float | None = None
    clock_max_mhz: float | None = None
    clock_set_mhz: float | None = None
    memory_clock_set_mhz: float | None = None
    power_limit_w: float | None = None
    persistence: str | None = None
    ecc: str | None = None
    ecc_errors: float | None = None
    mig: str | None = None
    throttle: str | None = None


@dataclass(frozen=True)
class GpuProcess:
    uuid: str | None = None
    pid: float | None = None
    name: str | None = None
    memory_mib: float | None = None


@dataclass(frozen=True)
class Space:
    path: str
    total: int | None
    free: int | None


@dataclass(frozen=True)
class Limit:
    """None is unlimited."""

    soft: int | None
    hard: int | None


@dataclass(frozen=True)
class Interface(fabric.Interface):
    addresses: tuple[str, ...]


@dataclass(frozen=True)
class Dataset:
    path: str
    exists: bool
    files: int
    bytes: int
    names: str | None
    contents: str | None
    trouble: str | None = None


@dataclass(frozen=True)
class Facts:
    host: Host
    interpreters: Mapping[str, Installed | None]
    gpus: tuple[Gpu, ...]
    gpu_processes: tuple[GpuProcess, ...]
    gpu_trouble: str | None
    gpu_cards: int
    shared_memory: Space
    scratch: Space
    open_files: Limit
    locked_memory: Limit
    address: str | None
    interface: Interface | None
    infiniband: tuple[InfinibandPort, ...]
    ports: Mapping[int, bool | None]
    port_range: tuple[int, int] | None
    dataset: Dataset | None


@dataclass(frozen=True)
class Offset:
    """How far the node's clock is ahead of ours, in seconds; the truth lies within `uncertainty` of it."""

    seconds: float
    uncertainty: float


@dataclass(frozen=True)
class Node:
    """`facts` and `offset` are None where the node gave no answer, and `trouble` then says why."""

    name: str
    trouble: str | None
    facts: Facts | None = None
    offset: Offset | None = None
    answer: Mapping[str, Any] | None = None


def node_of(reply: Reply) -> Node:
    answer = reply.answer
    if answer is None:
        return Node(reply.node, reply.trouble or "gave no answer")
    try:
        facts = facts_of(answer)
        offset = offset_of(reply.sent, answer["began"], answer["ended"], reply.received)
    except (KeyError, TypeError, ValueError) as error:
        return Node(reply.node, f"gave an answer that is not understood ({error!r})")
    return Node(reply.node, None, facts, offset, answer)


def offset_of(sent: float, began: float, ended: float, received: float) -> Offset:
    """As in NTP (RFC 5905): what the node did between `began` and `ended` does not count as way."""
    return Offset(
        seconds=((began - sent) + (ended - received)) / 2,
        uncertainty=max(0.0, ((received - sent) - (ended - began)) / 2),
    )


def facts_of(answer: Mapping[str, Any]) -> Facts:
    """Refuses what could not be an index or an address: both come to stand in commands to be pasted."""
    interfaces = {
        each["name"]: Interface(**{**each, "addresses": tuple(each["addresses"])})
        for each in answer["interfaces"]
    }
    return Facts(
        host=Host(**answer["host"]),
        interpreters={
            path: Installed(**fields) if fields else None for path, fields in answer["interpreters"].items()
        },
        gpus=tuple(Gpu(**{**gpu, "index": str(int(gpu["index"]))}) for gpu in answer["gpus"]),
        gpu_processes=tuple(GpuProcess(**process) for process in answer["gpu_processes"]),
        gpu_trouble=answer["gpu_trouble"],
        gpu_cards=answer["gpu_cards"],
        shared_memory=Space(**answer["shared_memory"]),
        scratch=Space(**answer["scratch"]),
        open_files=Limit(*answer["limits"]["open_files"]),
        locked_memory=Limit(*answer["limits"]["locked_memory"]),
        address=str(ip_address(answer["address"])) if answer["address"] else None,
        interface=interfaces.get(answer["interface"]),
        infiniband=tuple(InfinibandPort(**port) for port in answer["infiniband"]),
        ports={int(port): free for port, free in answer["ports"].items()},
        port_range=(answer["port_range"][0], answer["port_range"][1]) if answer["port_range"] else None,
        dataset=Dataset(**answer["dataset"]) if answer.get("dataset") else None,
    )
