"""Examination of nodes: what it looks for, what each node told, and what most have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any, Protocol, TypeVar

from trainmark.machine import network
from trainmark.machine.network import InfinibandPort

# Where the rendezvous of the ranks usually is, and its neighbours.
RENDEZVOUS_PORTS = tuple(range(29500, 29508))


@dataclass(frozen=True)
class Interpreter:
    """A Python that ranks will run with; `install` is the command that makes it, where there is one."""

    name: str
    path: str
    install: str | None = None


@dataclass(frozen=True)
class Wanted:
    """`addresses` and `interfaces` by node, where they are known; else each node tells its own.

    `framework`: every interpreter is to have one. `deep` reads all of the dataset, not only its names and
    sizes. `seconds` is how long a node may take to answer, and `meeting_seconds` how long the nodes try to
    reach each other; 0 leaves that out.
    """

    interpreters: tuple[Interpreter, ...] = ()
    addresses: Mapping[str, str] = field(default_factory=dict)
    interfaces: Mapping[str, str] = field(default_factory=dict)
    ports: tuple[int, ...] = RENDEZVOUS_PORTS
    scratch: str = "/tmp"
    dataset: str | None = None
    framework: bool = False
    deep: bool = False
    seconds: float = 60.0
    meeting_seconds: float = 10.0


@dataclass(frozen=True)
class NodeHost:
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
class NodeInstallation:
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
class DiskSpace:
    path: str
    total: int | None
    free: int | None


@dataclass(frozen=True)
class ResourceLimit:
    """None is unlimited."""

    soft: int | None
    hard: int | None


@dataclass(frozen=True)
class NodeInterface(network.Interface):
    addresses: tuple[str, ...]


@dataclass(frozen=True)
class NodeDataset:
    path: str
    exists: bool
    files: int
    bytes: int
    names: str | None
    contents: str | None
    trouble: str | None = None


@dataclass(frozen=True)
class NodeFacts:
    host: NodeHost
    interpreters: Mapping[str, NodeInstallation | None]
    gpus: tuple[Gpu, ...]
    gpu_processes: tuple[GpuProcess, ...]
    gpu_trouble: str | None
    gpu_cards: int
    shared_memory: DiskSpace
    scratch: DiskSpace
    open_files: ResourceLimit
    locked_memory: ResourceLimit
    address: str | None
    interface: NodeInterface | None
    infiniband: tuple[InfinibandPort, ...]
    ports: Mapping[int, bool | None]
    port_range: tuple[int, int] | None
    dataset: NodeDataset | None


@dataclass(frozen=True)
class ClockOffset:
    """How far the node's clock is ahead of ours, in seconds; the truth lies within `uncertainty` of it."""

    seconds: float
    uncertainty: float


@dataclass(frozen=True)
class Reply:
    """What a node answered, or what kept it from answering; `sent` and `received` by our wall clock."""

    node: str
    answer: dict[str, Any] | None
    trouble: str | None
    sent: float
    received: float


class Asker(Protocol):
    nodes: Sequence[str]

    def __call__(self, program: str, given: Sequence[dict[str, Any]], limit: float) -> list[Reply]:
        """`given` has one question for each node, in their order; so do the replies."""


@dataclass(frozen=True)
class ExaminedNode:
    """`facts` and `offset` are None where the node gave no answer, and `trouble` then says why."""

    name: str
    trouble: str | None
    facts: NodeFacts | None = None
    offset: ClockOffset | None = None
    answer: Mapping[str, Any] | None = None


def node_of(reply: Reply) -> ExaminedNode:
    answer = reply.answer
    if answer is None:
        return ExaminedNode(reply.node, reply.trouble or "gave no answer")
    try:
        facts = facts_of(answer)
        offset = offset_of(reply.sent, answer["began"], answer["ended"], reply.received)
    except (KeyError, TypeError, ValueError) as error:
        return ExaminedNode(reply.node, f"gave an answer that is not understood ({error!r})")
    return ExaminedNode(reply.node, None, facts, offset, answer)


def offset_of(sent: float, began: float, ended: float, received: float) -> ClockOffset:
    """As in NTP (RFC 5905): what the node did between `began` and `ended` does not count as way."""
    return ClockOffset(
        seconds=((began - sent) + (ended - received)) / 2,
        uncertainty=max(0.0, ((received - sent) - (ended - began)) / 2),
    )


def facts_of(answer: Mapping[str, Any]) -> NodeFacts:
    """Refuses what could not be an index or an address: both come to stand in commands to be pasted."""
    interfaces = {
        each["name"]: NodeInterface(**{**each, "addresses": tuple(each["addresses"])})
        for each in answer["interfaces"]
    }
    return NodeFacts(
        host=NodeHost(**answer["host"]),
        interpreters={
            path: NodeInstallation(**fields) if fields else None
            for path, fields in answer["interpreters"].items()
        },
        gpus=tuple(Gpu(**{**gpu, "index": str(int(gpu["index"]))}) for gpu in answer["gpus"]),
        gpu_processes=tuple(GpuProcess(**process) for process in answer["gpu_processes"]),
        gpu_trouble=answer["gpu_trouble"],
        gpu_cards=answer["gpu_cards"],
        shared_memory=DiskSpace(**answer["shared_memory"]),
        scratch=DiskSpace(**answer["scratch"]),
        open_files=ResourceLimit(*answer["limits"]["open_files"]),
        locked_memory=ResourceLimit(*answer["limits"]["locked_memory"]),
        address=str(ip_address(answer["address"])) if answer["address"] else None,
        interface=interfaces.get(answer["interface"]),
        infiniband=tuple(InfinibandPort(**port) for port in answer["infiniband"]),
        ports={int(port): free for port, free in answer["ports"].items()},
        port_range=(answer["port_range"][0], answer["port_range"][1]) if answer["port_range"] else None,
        dataset=NodeDataset(**answer["dataset"]) if answer.get("dataset") else None,
    )


T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True)
class NodeCall:
    """One node's try to reach another: the round trip in seconds, or why there was none.

    `ahead` is how far the clock of the one called is before the caller's, known to half of the round trip.
    """

    caller: str
    called: str
    address: str
    port: int
    seconds: float | None = None
    ahead: float | None = None
    trouble: str | None = None


@dataclass(frozen=True)
class Examination:
    wanted: Wanted
    nodes: tuple[ExaminedNode, ...]
    calls: tuple[NodeCall, ...] = ()

    def facts(self) -> Iterator[tuple[str, NodeFacts]]:
        """Of those that answered."""
        return ((node.name, node.facts) for node in self.nodes if node.facts is not None)

    def each(self, of: Callable[[NodeFacts], T]) -> dict[str, T]:
        return {name: of(facts) for name, facts in self.facts()}

    def installed(self) -> Iterator[tuple[Interpreter, dict[str, NodeInstallation]]]:
        """Each interpreter that is wanted, with the nodes that have it."""
        for asked in self.wanted.interpreters:
            by_node = {name: facts.interpreters.get(asked.path) for name, facts in self.facts()}
            yield asked, {name: installed for name, installed in by_node.items() if installed is not None}


def most_common(values: Mapping[str, T]) -> T | None:
    """What most nodes have, from which the others deviate; of two as common, the earlier node's."""
    return Counter(values.values()).most_common(1)[0][0] if values else None
