"""The local launcher: N ranks on this machine, under one agent that outlives neither them nor us."""

from __future__ import annotations

import os
import secrets
import socket
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from trainmark.launch.agent.network import free_ports
from trainmark.launch.job.job import Job
from trainmark.launch.job.placement import LOOPBACK, LOOPBACK_INTERFACE, OTHERS, Placement, RankSlot
from trainmark.launch.job.session import GRACE_SECONDS, AgentSession, make_folders
from trainmark.launch.nodes.node import Node
from trainmark.launch.transport.agent_connection import AgentConnection
from trainmark.launch.transport.bundle import boot_command
from trainmark.launch.transport.channel import PipeChannel
from trainmark.secret import secret_values


class LocalLauncher:
    """`first_port` is tried before any other, so that a site can name the one its firewall leaves open."""

    def __init__(self, first_port: int | None = None) -> None:
        self._first_port = first_port

    def start(self, job: Job) -> AgentSession:
        make_folders(job.folder)
        master, *ports = free_ports(LOOPBACK, 1 + job.world_size)
        master, self._first_port = self._first_port or master, None
        rank_slot = RankSlot(socket.gethostname(), LOOPBACK, LOOPBACK_INTERFACE, tuple(ports))
        mark = secrets.token_hex(16)
        connection = AgentConnection(
            Node("localhost"), PipeChannel(boot_command(sys.executable)), patience=None
        )
        hidden = secret_values({**os.environ, **job.environment})
        placed = Placement(job, [rank_slot], master, mark)
        environment = dict(job.environment)
        if job.programs is not None:
            usual = environment.get("PATH") or os.environ.get("PATH", os.defpath)
            environment["PATH"] = os.pathsep.join([str(job.programs), usual])
        ranks = [
            {
                "rank": rank,
                "command": list(job.command),
                "environment": {**environment, **placed.of(rank)},
                "unset": OTHERS,
                "folder": str(job.working_folder),
                "log": str(job.log(rank)),
                "secrets": hidden,
            }
            for rank in range(job.world_size)
        ]
        connection.send({"do": "start", "grace": GRACE_SECONDS, "folder": None, "places": {}, "ranks": ranks})
        return AgentSession(job, [connection], mark)

    def shipped(self, folder: Path) -> AbstractContextManager[None]:
        """It is here already."""
        return nullcontext()

    def shown(self, job: Job) -> Sequence[tuple[str, str]]:
        ranks = f"  × {job.world_size} ranks" if job.world_size > 1 else ""
        return [("localhost", job.shell() + ranks)]
