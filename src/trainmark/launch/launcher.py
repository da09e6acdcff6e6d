"""The launchers: ranks on this machine under one agent, or an agent on each of several nodes.

The limit of open files is raised to what the connections to all nodes need.
"""

from __future__ import annotations

import contextlib
import os
import resource
import secrets
import socket
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from trainmark.base.errors import UserError
from trainmark.base.secrets import secret_values
from trainmark.launch.agent.ranks import free_ports
from trainmark.launch.agent.wire import Message
from trainmark.launch.bundle import boot_command
from trainmark.launch.carrier import Carrier, PipeChannel
from trainmark.launch.connect import FEWEST_NODES, Connected, Starter, connect, connect_by_one_command
from trainmark.launch.connection import AgentConnection, answers, gather, scaled_timeout, stop_all
from trainmark.launch.delivery import FolderArchive, archive_of, deliver
from trainmark.launch.job import LOOPBACK, LOOPBACK_INTERFACE, OTHERS, Job, Placement, RankSlot
from trainmark.launch.nodes import Node, NodeError, node_address
from trainmark.launch.session import GRACE_SECONDS, OPEN_LOGS, SWEEP_SECONDS, AgentSession, make_folders

# The socket of its connection; what the carriers print for people is in one file.
PER_NODE = 1
# A log and the times of its bytes.
PER_LOG = 2
# The run's own files, the epoll, imports, and the pipes of a command that is being started.
RESERVE = 96
OPEN_FILES = Path("/proc/self/fd")  # Linux; elsewhere the reserve must do


def descriptors_needed(nodes: int, already_open: int = 0) -> int:
    """Open files of this process while it is connected to so many nodes at once."""
    return already_open + nodes * PER_NODE + OPEN_LOGS * PER_LOG + RESERVE


def open_files() -> int:
    """Count the files that this process has open now: a caller that embeds the launcher may have many.

    Counting opens a file itself, so it is done under the hard limit: the soft one may be reached already.
    """
    if not OPEN_FILES.is_dir():
        return 0
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        return len(list(OPEN_FILES.iterdir()))
    except OSError:
        return hard
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def require_descriptors(nodes: int) -> None:
    """Raise the soft limit of open files to what is needed; UserError where the hard limit forbids that."""
    wanted = descriptors_needed(nodes, open_files())
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    if hard != resource.RLIM_INFINITY and hard < wanted:
        raise UserError(
            f"{nodes:,} nodes need {wanted:,} open files, and this process may open {hard:,} at most "
            f"(`ulimit -Hn`); raise the hard limit (`nofile` in /etc/security/limits.d/, then log in anew; "
            f"`--ulimit nofile={wanted}` for a container), or use fewer nodes."
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def rank_to_start(job: Job, rank: int, environment: Mapping[str, str]) -> dict[str, Any]:
    """What an agent must know of a rank; without a log it sends home what the rank prints."""
    return {
        "rank": rank,
        "command": list(job.command),
        "environment": environment,
        "unset": OTHERS,
        "folder": str(job.working_folder),
        "log": None,
        "secrets": [],
    }


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
                **rank_to_start(job, rank, {**environment, **placed.of(rank)}),
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


SLACK_SECONDS = 5.0


class ClusterLauncher:
    """`interface` is the network the ranks talk over; `passed` names variables of ours that they get."""

    def __init__(
        self,
        carrier: Carrier,
        interface: str | None = None,
        passed: Sequence[str] = (),
        first_port: int | None = None,
    ) -> None:
        self.carrier = carrier
        self.interface = interface
        self.passed = tuple(passed)
        self.left_out: set[str] = set()
        self.one_by_one: str | None = None
        self._first_port = first_port
        self._archives: list[FolderArchive] = []

    @property
    def nodes(self) -> list[Node]:
        """Those that may be used, in the order in which they are."""
        return [node for node in self.carrier.nodes() if node.name not in self.left_out]

    def bring(self, archive: FolderArchive) -> None:
        """From now on every node has it before its ranks start; its path in a job stands for the copy."""
        self._archives.append(archive)

    @contextlib.contextmanager
    def shipped(self, folder: Path) -> Iterator[None]:
        archive = archive_of(folder)
        self._archives.append(archive)
        try:
            yield
        finally:
            self._archives.remove(archive)

    def start(self, job: Job) -> AgentSession:
        make_folders(job.folder)
        nodes = self.nodes[: job.nodes]
        if len(nodes) < job.nodes:
            left = ", ".join(sorted(self.left_out)) or "none"
            raise NodeError(
                self.carrier.name, f"{job.nodes} nodes are needed, {len(nodes)} are left (out: {left})"
            )
        connected = answers(self.connect(nodes, all_needed=True))
        connections = [each.connection for each in connected]
        try:
            places = answers(deliver(connections, self._archives))
            return self._start(job, connected, places)
        except BaseException:
            stop_all(connections)
            raise

    def connect(self, nodes: Sequence[Node], all_needed: bool) -> list[Connected | NodeError]:
        """An agent on each that has said hello; where all are needed, the first failure is raised."""
        require_descriptors(len(nodes))
        reached = self._reach_by_one_command(nodes)
        reach = self._reach if reached is None else reached.__getitem__
        try:
            return connect(nodes, reach, self.carrier.hello_seconds, all_needed)
        except BaseException:
            stop_all((reached or {}).values())  # also those whose turn had not come
            raise

    def _reach_by_one_command(self, nodes: Sequence[Node]) -> dict[Node, AgentConnection] | None:
        """None where they are to be reached one by one; `one_by_one` then says why, if it was tried."""
        starter = self.carrier
        if len(nodes) < FEWEST_NODES or self.one_by_one or not isinstance(starter, Starter):
            return None
        outcome = connect_by_one_command(starter, nodes)
        if isinstance(outcome, str):
            self.one_by_one = outcome
            return None
        return outcome

    def ask(
        self,
        nodes: Sequence[Node],
        command: Sequence[str],
        given: Sequence[bytes],
        limit: float,
        environment: Mapping[str, str] | None = None,
    ) -> list[Message | NodeError]:
        """What a short command prints on each node at the same time, or why it could not be asked."""
        answers_by_node: dict[Node, Message | NodeError] = {}
        connections: list[AgentConnection] = []
        for node, each in zip(nodes, self.connect(nodes, all_needed=False), strict=True):
            if isinstance(each, NodeError):
                answers_by_node[node] = each
            else:
                connections.append(each.connection)
        try:
            question = {"do": "ask", "command": list(command), "limit": limit}
            payloads = dict(zip(nodes, given, strict=True))
            delivered = deliver(connections, self._archives)
            asked, sent = [], {}
            for connection, places in zip(connections, delivered, strict=True):
                if isinstance(places, NodeError):
                    answers_by_node[connection.node] = places
                    continue
                own = {"environment": dict(environment or {}), "places": places}
                sent[connection] = time.time()
                connection.send({**question, **own}, payloads[connection.node])
                asked.append(connection)
            patience = scaled_timeout(limit + SLACK_SECONDS, len(asked))
            for connection, answer in zip(asked, gather(asked, "answer", patience), strict=True):
                if isinstance(answer, NodeError):
                    answers_by_node[connection.node] = answer
                else:
                    answers_by_node[connection.node] = ({**answer[0], "sent": sent[connection]}, answer[1])
        finally:
            stop_all(connections)
        return [answers_by_node[node] for node in nodes]

    def shown(self, job: Job) -> list[tuple[str, str]]:
        """The carrier's command for each node, and below it what its agent starts there."""
        nodes = self.nodes[: job.nodes]
        rank_slots = [self._guessed_rank_slot(job, node) for node in nodes]
        placed = Placement(job, rank_slots, self._first_port or 0, "…")
        commands = []
        for index, node in enumerate(nodes):
            commands.append((node.name, self.carrier.shown(node, boot_command(node.python))))
            for local in range(job.ranks_per_node):
                rank = index * job.ranks_per_node + local
                commands.append((node.name, job.placed(placed.of(rank)).shell()))
        return commands

    def gone(self) -> str | None:
        return self.carrier.gone()

    def close(self) -> None:
        self.carrier.close()

    def _start(
        self, job: Job, connected: Sequence[Connected], places: Sequence[dict[str, str]]
    ) -> AgentSession:
        rank_slots, master = self._rank_slots(job, connected)
        mark = secrets.token_hex(16)
        passed = {name: os.environ[name] for name in self.passed if name in os.environ}
        environment = {**passed, **job.environment}
        hidden = secret_values({**os.environ, **environment})
        placed = Placement(job, rank_slots, master, mark)
        connections = [each.connection for each in connected]
        session = AgentSession(job, connections, mark, hidden, self._revisit, self.carrier.why_lost)
        for index, (each, place) in enumerate(zip(connected, places, strict=True)):
            connection = each.connection
            session.set_clock(connection, each.hello["offset"])
            first = index * job.ranks_per_node
            ranks = [
                rank_to_start(job, rank, placed.own(rank))
                for rank in range(first, first + job.ranks_per_node)
            ]
            common = {"environment": {**environment, **placed.common}, "ranks": ranks}
            start = {"do": "start", "grace": GRACE_SECONDS, "folder": str(job.folder), "places": place}
            own = {"node": connection.node.name, "scratch": connection.node.scratch}
            connection.send({**start, **own, "gpus": job.ranks_per_node if job.gpus else 0, **common})
        return session

    def _rank_slots(self, job: Job, connected: Sequence[Connected]) -> tuple[list[RankSlot], int]:
        """Each node's address and ports, asked of the node; one alone needs no network."""
        alone = len(connected) == 1
        connections = [each.connection for each in connected]
        homes = [
            (LOOPBACK, LOOPBACK_INTERFACE)
            if alone
            else node_address(each.connection.node, each.hello, self.interface)
            for each in connected
        ]
        for connection, (address, _) in zip(connections, homes, strict=True):
            connection.send({"do": "ports", "address": address, "count": 1 + job.ranks_per_node})
        ports = [
            ports_from_answer(connection, answer)
            for connection, answer in zip(connections, gather(connections, "ports"), strict=True)
        ]
        rank_slots = [
            RankSlot(connection.node.name, address, interface, tuple(free[1:]), connection.node.devices)
            for connection, (address, interface), free in zip(connections, homes, ports, strict=True)
        ]
        master, self._first_port = self._first_port or ports[0][0], None
        return rank_slots, master

    def _guessed_rank_slot(self, job: Job, node: Node) -> RankSlot:
        interface = node.interface or self.interface or "(its interface)"
        return RankSlot(node.name, node.usual_address, interface, (0,) * job.ranks_per_node, node.devices)

    def _reach(self, node: Node) -> AgentConnection:
        return AgentConnection(node, self.carrier.reach(node, boot_command(node.python)))

    def _revisit(self, node: Node) -> AgentConnection:
        connection = self._reach(node)
        connection.patience = SWEEP_SECONDS
        return connection


def ports_from_answer(connection: AgentConnection, answer: Message | NodeError) -> list[int]:
    if isinstance(answer, NodeError):
        raise answer
    try:
        return [int(port) for port in answer[0]["ports"]]
    except (KeyError, TypeError, ValueError) as error:
        raise NodeError(connection.node.name, "it names no ports") from error
