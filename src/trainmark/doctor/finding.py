"""What the doctor says of one node in one respect."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainmark.doctor.examined import Examined


class Mark(str, Enum):
    OK = "ok"
    WARN = "warn"
    BAD = "bad"


SEVERITY = {Mark.OK: 0, Mark.WARN: 1, Mark.BAD: 2}


@dataclass(frozen=True)
class Finding:
    """`value` is short, for a cell of the table; `what` is the sentence and `fix` what to paste or do."""

    node: str
    mark: Mark
    value: str
    what: str = ""
    fix: str = ""
    peer: str | None = None
    check: str = ""

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "mark": self.mark.value}


def ok(node: str, value: str, peer: str | None = None) -> Finding:
    return Finding(node, Mark.OK, value, peer=peer)


def warn(node: str, value: str, what: str, fix: str, peer: str | None = None) -> Finding:
    return Finding(node, Mark.WARN, value, what, fix, peer)


def bad(node: str, value: str, what: str, fix: str, peer: str | None = None) -> Finding:
    return Finding(node, Mark.BAD, value, what, fix, peer)


class About(IntEnum):
    """The parts of the table, in their order."""

    REACH = 1
    SOFTWARE = 2
    DEVICES = 3
    HOST = 4
    NETWORK = 5
    DATA = 6


@dataclass(frozen=True)
class Check:
    """A run is refused where an essential one is red."""

    name: str
    about: About
    find: Callable[[Examined], Iterator[Finding]]
    essential: bool = False
