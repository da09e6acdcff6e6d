"""The one stream in the middle: what happened in a training run, and what its numbers mean.

Version 1, one JSON object a line. `mono` is seconds on the host's monotonic clock and `wall` seconds since
1970; readers of foreign logs know only what the log printed, so either may be absent. A step's times
are those of its *end*, as the device saw it. Standard library only: it is sent to nodes too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Union

SCHEMA_VERSION = 1


class Scope(str, Enum):
    """Whether a number counts this rank alone or all ranks together."""

    RANK = "rank"
    GLOBAL = "global"


@dataclass(frozen=True)
class RunStart:
    """The first event of a rank; `facts` holds what the workload says of itself (versions, device, …).

    `node` among them is the name of the host that the rank runs on.
    """

    rank: int
    world_size: int
    mono: float | None
    wall: float | None
    unit: str = "samples"
    scope: Scope = Scope.RANK
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Step:
    """One finished training step; `samples` is never cumulative and counts what RunStart.scope says.

    `compute`, `communication` and `data_wait` are seconds of this step on this rank. Communication is the
    time in which the rank did nothing but wait for the others' gradients, not what ran beside its work.
    """

    rank: int
    step: int
    mono: float | None
    wall: float | None
    samples: float | None
    loss: float | None = None
    lr: float | None = None
    data_wait: float | None = None
    memory: int | None = None
    compute: float | None = None
    communication: float | None = None


@dataclass(frozen=True)
class Mark:
    """Anything that interrupts or frames the steps: `epoch`, `eval`, `checkpoint`, `note`."""

    kind: str
    rank: int
    mono: float | None
    wall: float | None
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class DeviceSample:
    """The readings of a device at one moment, read from outside the workload; units in the names.

    `own_memory_bytes` is what the trial's processes use of its memory; on a host, the sum of their RSS.
    """

    device: str
    mono: float
    wall: float
    utilisation: float | None = None
    memory_bytes: int | None = None
    power_watts: float | None = None
    temperature_c: float | None = None
    clock_mhz: float | None = None
    clock_max_mhz: float | None = None
    throttle: tuple[str, ...] = ()
    foreign_processes: int = 0
    foreign_share: float | None = None
    own_memory_bytes: int | None = None


def is_host(device: str) -> bool:
    """The processors of a machine: `cpu` here, `node1/cpu` on a node."""
    return device.rpartition("/")[2] == "cpu"


@dataclass(frozen=True)
class RunEnd:
    """The last event of a rank that ended by its own will; `facts` may carry `peak_flops` and the like."""

    rank: int
    mono: float | None
    wall: float | None
    facts: dict[str, Any] = field(default_factory=dict)


# Sent to nodes, where Python may be 3.9.
Event = Union[RunStart, Step, Mark, DeviceSample, RunEnd]  # noqa: UP007


# NVML's bits for a clock held below what the card could do. Left out are those that are no trouble: an idle
# card (0x1), and the clocks that the owner (0x2) or the display (0x100) asked for.
THROTTLE_BITS = {
    0x4: "sw-power-cap",
    0x8: "hw-slowdown",
    0x10: "sync-boost",
    0x20: "thermal",
    0x40: "thermal",
    0x80: "power-brake",
    0x200: "board-limit",
    0x400: "reliability",
}


def throttle_names(bits: int | None) -> tuple[str, ...]:
    """The reasons why the clock is held down, without those that are no trouble."""
    return tuple(dict.fromkeys(name for bit, name in THROTTLE_BITS.items() if (bits or 0) & bit))
