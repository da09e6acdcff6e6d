"""What an examination looks for, beside what every node is asked anyway."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

# Where the rendezvous of the ranks usually is, and its neighbours.
PORTS = tuple(range(29500, 29508))


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
    ports: tuple[int, ...] = PORTS
    scratch: str = "/tmp"
    dataset: str | None = None
    framework: bool = False
    deep: bool = False
    seconds: float = 60.0
    meeting_seconds: float = 10.0
