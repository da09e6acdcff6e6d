"""MPI: mpirun carries the agent to each node by whatever the site's MPI uses; the ranks need none of it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from trainmark.base.errors import UserError
from trainmark.launch.bundle import connecting_command
from trainmark.launch.carrier import CommandCarrier, PipeChannel
from trainmark.launch.connect_back import INVITATION
from trainmark.launch.nodes import Node
from trainmark.launch.options import LaunchOptions

VERSION_SECONDS = 20.0
# Its daemons end by themselves where the link to them is cut.
KEEPALIVE = {"oob_tcp_keepalive_time": 3, "oob_tcp_keepalive_intvl": 1, "oob_tcp_keepalive_probes": 3}


class Mpi(CommandCarrier):
    """Open MPI or one that is started by Hydra (MPICH, Intel); `options` are mpirun's own."""

    name = "mpi"
    hello_seconds = 30.0
    task_facts: Mapping[str, Any] = MappingProxyType(
        {"node_variable": "OMPI_COMM_WORLD_RANK", "detached": True}
    )

    def __init__(
        self, nodes: Sequence[Node], options: Sequence[str] = (), interface: str | None = None
    ) -> None:
        if shutil.which("mpirun") is None:
            raise UserError("mpirun is not on the path; load the site's MPI, or use --launcher ssh.")
        if not nodes:
            raise UserError("--launcher mpi needs hosts: --hosts a,b, a --hostfile or an --inventory.")
        self._nodes = tuple(nodes)
        self._options = tuple(options)
        self._interface = interface

    @classmethod
    def of(cls, choice: LaunchOptions) -> Mpi:
        return cls(choice.nodes, choice.options, choice.interface)

    def nodes(self) -> tuple[Node, ...]:
        return self._nodes

    def words(self, node: Node, command: Sequence[str]) -> list[str]:
        if _is_hydra():
            network = ["-iface", self._interface] if self._interface else []
            return ["mpirun", "-hosts", node.name, "-n", "1", *network, *self._options, *command]
        return self._open_mpi([node], command)

    def tasks(self, nodes: Sequence[Node]) -> dict[str, Node] | None:
        """Numbered in the order of the hosts; Hydra's were not tried."""
        return None if _is_hydra() else {str(number): node for number, node in enumerate(nodes)}

    def address_of(self, node: Node) -> str:
        return node.usual_address

    def start_all(self, nodes: Sequence[Node], python: str, invitation: str) -> PipeChannel:
        """Input goes to one process only, variables to all."""
        words = self._open_mpi(nodes, ("--map-by", "seq", "-x", INVITATION, *connecting_command(python)))
        return PipeChannel(words, {**os.environ, INVITATION: invitation})

    def _open_mpi(self, nodes: Sequence[Node], command: Sequence[str]) -> list[str]:
        settings = {**KEEPALIVE, **({"oob_tcp_if_include": self._interface} if self._interface else {})}
        network = [word for name, value in settings.items() for word in ("--mca", name, str(value))]
        as_root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
        names = ",".join(node.name for node in nodes)
        where = ("-np", str(len(nodes)), "--host", names)
        return ["mpirun", *as_root, *where, *network, *self._options, *command]


@lru_cache
def _is_hydra() -> bool:
    completed = subprocess.run(
        ["mpirun", "--version"], capture_output=True, text=True, timeout=VERSION_SECONDS
    )
    return "Open MPI" not in completed.stdout


CARRIER = Mpi
