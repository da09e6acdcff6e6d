"""Findings of checks on nodes, with every threshold and its reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from enum import Enum, IntEnum
from typing import Any

from trainmark.machine.examination import Examination, Interpreter


class FindingMark(str, Enum):
    OK = "ok"
    WARN = "warn"
    BAD = "bad"


SEVERITY = {FindingMark.OK: 0, FindingMark.WARN: 1, FindingMark.BAD: 2}


@dataclass(frozen=True)
class NodeFinding:
    """`value` is short, for a cell of the table; `what` is the sentence and `fix` what to paste or do."""

    node: str
    mark: FindingMark
    value: str
    what: str = ""
    fix: str = ""
    peer: str | None = None
    check: str = ""

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "mark": self.mark.value}


class NodeReport:
    """The findings of one check on one node: what is wrong, else that its value is as it should be."""

    def __init__(self, node: str, value: str) -> None:
        self.node, self.value = node, value
        self._wrong: list[NodeFinding] = []

    def warn(self, what: str, fix: str, value: str | None = None, peer: str | None = None) -> None:
        self._add(FindingMark.WARN, what, fix, value, peer)

    def bad(self, what: str, fix: str, value: str | None = None, peer: str | None = None) -> None:
        self._add(FindingMark.BAD, what, fix, value, peer)

    def _add(self, mark: FindingMark, what: str, fix: str, value: str | None, peer: str | None) -> None:
        self._wrong.append(NodeFinding(self.node, mark, value or self.value, what, fix, peer))

    def __iter__(self) -> Iterator[NodeFinding]:
        return iter(self._wrong or [NodeFinding(self.node, FindingMark.OK, self.value)])


class CheckArea(IntEnum):
    """The parts of the table, in their order."""

    REACH = 1
    SOFTWARE = 2
    DEVICES = 3
    HOST = 4
    NETWORK = 5
    DATA = 6


Find = Callable[[Examination], Iterator[NodeFinding]]


@dataclass(frozen=True)
class NodeCheck:
    """A run is refused where an essential one is red."""

    name: str
    about: CheckArea
    find: Find
    essential: bool = False


def node_check(name: str, about: CheckArea, essential: bool = False) -> Callable[[Find], NodeCheck]:
    """Make a check of a function."""
    return lambda find: NodeCheck(name, about, find, essential)


MIB = 1 << 20
GIB = 1 << 30

# What Docker gives a container that did not ask: loaders and NCCL die of it with a bus error.
SHARED_MEMORY_OF_DOCKER = 64 * MIB
# NCCL's buffers between the GPUs of a node and the batches of several loader processes.
SHARED_MEMORY_PER_GPU = 1 * GIB

# Each rank holds sockets to its peers and each loader process its files; 1,024 was chosen for other programs.
OPEN_FILES = 4096
OPEN_FILES_SUGGESTED = 65536

# ssh cannot tell less apart from the way itself, and the events of two nodes are put in order by it.
OFFSET_WARN_SECONDS = 0.5
# From here on logs of two nodes cannot be read together, and certificates and tickets begin to fail.
OFFSET_BAD_SECONDS = 5.0

# A rank needs a processor of its own when it wants it: beyond this, others take a good part of them.
LOAD_PER_CPU = 0.5

# Within a machine room a round trip is well below a millisecond; more than this is another place.
ROUND_TRIP_SECONDS = 0.005

# Where an idle device is this hot, it will lower its clocks soon after the start.
IDLE_TEMPERATURE = 75.0
# What stays on a device without a process: a context that was not given back, or a process in a container.
IDLE_MEMORY_MIB = 1024.0

# Bits of NVML's clocks event reasons that lower the clocks although work waits.
THROTTLED = {
    0x08: "hardware slowdown",
    0x20: "too hot (software)",
    0x40: "too hot (hardware)",
    0x80: "power brake",
}
POWER_CAPPED = 0x04

# Checkpoints are not kept, but compilers' caches and logs are; a full disk ends a run.
SCRATCH_BAD_BYTES = 1 * GIB
SCRATCH_WARN_BYTES = 5 * GIB

# A framework's process takes 2 to 4 GiB before it has read an image.
MEMORY_AVAILABLE_BYTES = 4 * GIB

# Each pair of ranks takes several of them; the kernel's default is 28,232.
PORT_RANGE = 4096


def reinstall_fix(node: str, asked: Interpreter, how: str) -> str:
    """How an environment becomes what the others have."""
    if asked.install:
        return f"on {node}: `{asked.install} --force`"
    return f"on {node}: make the environment of {asked.path} anew {how}"


UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def format_bytes(count: float) -> str:
    """Three digits and a unit: `64 MiB`, `1.86 GiB`."""
    for unit in UNITS[:-1]:
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1024
    return f"{count:.3g} {UNITS[-1]}"
