"""All nodes with what they told, and what most of them have in common."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from trainmark.doctor.facts import Facts, Installed, Node
from trainmark.doctor.wanted import Interpreter, Wanted

T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True)
class Call:
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
class Examined:
    wanted: Wanted
    nodes: tuple[Node, ...]
    calls: tuple[Call, ...] = ()

    def facts(self) -> Iterator[tuple[str, Facts]]:
        """Of those that answered."""
        return ((node.name, node.facts) for node in self.nodes if node.facts is not None)

    def each(self, of: Callable[[Facts], T]) -> dict[str, T]:
        return {name: of(facts) for name, facts in self.facts()}

    def installed(self) -> Iterator[tuple[Interpreter, dict[str, Installed]]]:
        """Each interpreter that is wanted, with the nodes that have it."""
        for asked in self.wanted.interpreters:
            by_node = {name: facts.interpreters.get(asked.path) for name, facts in self.facts()}
            yield asked, {name: installed for name, installed in by_node.items() if installed is not None}


def most_common(values: Mapping[str, T]) -> T | None:
    """What most nodes have, from which the others deviate; of two as common, the earlier node's."""
    return Counter(values.values()).most_common(1)[0][0] if values else None
