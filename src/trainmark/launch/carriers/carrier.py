"""What one way of reaching nodes must know; everything else is the same for all of them."""

from __future__ import annotations

import abc
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from trainmark.launch.nodes.node import Node, NodeError
from trainmark.launch.transport.channel import Channel, PipeChannel


@dataclass(frozen=True)
class CarrierOption:
    """An option of the command line that only one launcher understands."""

    flag: str
    help: str
    is_file: bool = False

    @property
    def name(self) -> str:
        """`--ssh-config` is `ssh_config` in a run's folder."""
        return self.flag.removeprefix("--").replace("-", "_")


class Carrier(Protocol):
    """Starts a command on a node with its standard input and output connected to here."""

    name: str
    hello_seconds: float
    """How long a node may take until its agent says hello."""

    def nodes(self) -> tuple[Node, ...]:
        """Those it was given or was allotted, in the order in which they are used."""

    def reach(self, node: Node, command: Sequence[str]) -> Channel:
        """NodeError where it cannot even be tried."""

    def shown(self, node: Node, command: Sequence[str]) -> str:
        """The same as a person would type it."""

    def why_lost(self, node: Node) -> tuple[str, str] | None:
        """Which node is to blame for one that has gone, and why; None where there is nobody to ask."""

    def gone(self) -> str | None:
        """Why no node can be reached any more, as after a cancelled allocation; None while they can."""

    def close(self) -> None:
        """Gives back what was allotted for the run. Safe to call twice."""


class CommandCarrier(abc.ABC):
    """Reaches a node by a command of this machine; what differs is its words."""

    @abc.abstractmethod
    def words(self, node: Node, command: Sequence[str]) -> list[str]:
        """That run `command` on the node."""

    def reach(self, node: Node, command: Sequence[str]) -> PipeChannel:
        words = self.words(node, command)
        try:
            channel = PipeChannel(words)
        except OSError as error:  # as where a user may start no more processes
            raise NodeError(node.name, f"{words[0]} cannot be started here: {error.strerror}") from error
        channel.pid = None
        return channel

    def shown(self, node: Node, command: Sequence[str]) -> str:
        return shlex.join(self.words(node, command))

    def why_lost(self, node: Node) -> tuple[str, str] | None:
        return None

    def gone(self) -> str | None:
        return None

    def close(self) -> None:
        return None  # nothing was allotted
