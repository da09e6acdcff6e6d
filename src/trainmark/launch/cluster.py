"""The launcher for several machines: an agent on each node, however the carrier brings it there."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from trainmark.launch.address import address_of
from trainmark.launch.agent.wire import Message
from trainmark.launch.bundle import boot_command
from trainmark.launch.carrier import Carrier
from trainmark.launch.job import Job
from trainmark.launch.node import Node, NodeError
from trainmark.launch.parcel import Parcel, parcel_of
from trainmark.launch.placement import LOOPBACK, LOOPBACK_INTERFACE, OTHERS, Seat, placement
from trainmark.launch.post import PATIENCE_SECONDS, Post, answers, gather
from trainmark.launch.secret import secret_values
from trainmark.launch.session import GRACE_SECONDS, SWEEP_SECONDS, AgentSession, make_folders

DELIVERY_SECONDS = 600.0
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
        self._first_port = first_port
        self._parcels: list[Parcel] = []

    @property
    def nodes(self) -> list[Node]:
        """Those that may be used, in the order in which they are."""
        return [node for node in self.carrier.nodes() if node.name not in self.left_out]

    def bring(self, parcel: Parcel) -> None:
        """From now on every node has it before its ranks start; its path in a job stands for the copy."""
        self._parcels.append(parcel)

    @contextlib.contextmanager
    def lending(self, folder: Path) -> Iterator[None]:
        parcel = parcel_of(folder)
        self._parcels.append(parcel)
        try:
            yield
        finally:
            self._parcels.remove(parcel)

    def start(self, job: Job) -> AgentSession:
        make_folders(job.folder)
        nodes = self.nodes[: job.nodes]
        if len(nodes) < job.nodes:
            left = ", ".join(sorted(self.left_out)) or "none"
            raise NodeError(
                self.carrier.name, f"{job.nodes} nodes are needed, {len(nodes)} are left (out: {left})"
            )
        posts = self.open(nodes)
        try:
            hellos = answers(greet(posts, self.carrier.hello_seconds))
            places = self.deliver(posts)
            return self._start(job, posts, hellos, places)
        except BaseException:
            close(posts)
            raise

    def open(self, nodes: Iterable[Node]) -> list[Post]:
        """An agent on each, on its way; those that were reached are let go where one cannot be."""
        posts: list[Post] = []
        try:
            for node in nodes:
                posts.append(self._reach(node))
        except BaseException:
            close(posts)
            raise
        return posts

    def ask(
        self,
        nodes: Sequence[Node],
        command: Sequence[str],
        given: Sequence[bytes],
        limit: float,
        environment: Mapping[str, str] | None = None,
    ) -> list[Message | NodeError]:
        """What a short command prints on each node at the same time, or why it could not be asked."""
        found: dict[str, Message | NodeError] = {}
        posts: list[Post] = []
        for node in nodes:
            try:
                posts.append(self._reach(node))
            except NodeError as error:
                found[node.name] = error
        try:
            for post, hello in zip(list(posts), greet(posts, self.carrier.hello_seconds), strict=True):
                if isinstance(hello, NodeError):
                    found[post.node.name] = hello
                    post.close()
                    posts.remove(post)
            question = {"do": "ask", "command": list(command), "limit": limit}
            payloads = dict(zip((node.name for node in nodes), given, strict=True))
            places = self.deliver(posts)
            sent = time.time()
            for post, place in zip(posts, places, strict=True):
                own = {"environment": dict(environment or {}), "places": place}
                post.say({**question, **own}, payloads[post.node.name])
            for post, answer in zip(posts, gather(posts, "answer", limit + SLACK_SECONDS), strict=True):
                told = answer if isinstance(answer, NodeError) else ({**answer[0], "sent": sent}, answer[1])
                found[post.node.name] = told
        finally:
            close(posts)
        return [found[node.name] for node in nodes]

    def deliver(self, posts: Sequence[Post]) -> list[dict[str, str]]:
        """For each post, where what was brought lies there; sent only to those that lack it."""
        places: list[dict[str, str]] = [{} for _ in posts]
        for parcel in self._parcels:
            lacking = [index for index, post in enumerate(posts) if post.node.name not in parcel.there]
            asked = [posts[index] for index in lacking]
            for post in asked:
                post.say({"do": "have", "name": parcel.name})
            for index, (answer, _) in zip(lacking, answers(gather(asked, "have")), strict=True):
                places[index][str(parcel.folder)] = answer["path"] or _send(posts[index], parcel)
        return places

    def shown(self, job: Job) -> list[tuple[str, str]]:
        """The carrier's command for each node, and below it what its agent starts there."""
        nodes = self.nodes[: job.nodes]
        seats = [self._guessed_seat(job, node) for node in nodes]
        told = []
        for index, node in enumerate(nodes):
            told.append((node.name, self.carrier.shown(node, boot_command(node.python))))
            for local in range(job.ranks_per_node):
                rank = index * job.ranks_per_node + local
                port = self._first_port or 0
                told.append((node.name, job.placed(placement(job, rank, seats, port, "…")).shell()))
        return told

    def gone(self) -> str | None:
        return self.carrier.gone()

    def close(self) -> None:
        self.carrier.close()

    def _start(
        self,
        job: Job,
        posts: Sequence[Post],
        hellos: Sequence[Mapping[str, Any]],
        places: list[dict[str, str]],
    ) -> AgentSession:
        seats, master = self._seats(job, posts, hellos)
        mark = secrets.token_hex(16)
        passed = {name: os.environ[name] for name in self.passed if name in os.environ}
        environment = {**passed, **job.environment}
        hidden = secret_values({**os.environ, **environment})
        session = AgentSession(job, posts, mark, hidden, self._revisit, self.carrier.why_lost)
        for index, (post, hello, place) in enumerate(zip(posts, hellos, places, strict=True)):
            session.set_clock(post, hello["offset"])
            first = index * job.ranks_per_node
            ranks = [
                {
                    "rank": rank,
                    "command": list(job.command),
                    "environment": {**environment, **placement(job, rank, seats, master, mark)},
                    "unset": OTHERS,
                    "folder": str(job.working_folder),
                    "log": None,
                    "secrets": [],
                }
                for rank in range(first, first + job.ranks_per_node)
            ]
            start = {"do": "start", "grace": GRACE_SECONDS, "folder": str(job.folder), "places": place}
            post.say({**start, "node": post.node.name, "scratch": post.node.scratch, "ranks": ranks})
        return session

    def _seats(
        self, job: Job, posts: Sequence[Post], hellos: Sequence[Mapping[str, Any]]
    ) -> tuple[list[Seat], int]:
        """Each node's address and ports, asked of the node; one alone needs no network."""
        alone = len(posts) == 1
        homes = [
            (LOOPBACK, LOOPBACK_INTERFACE) if alone else address_of(post.node, hello, self.interface)
            for post, hello in zip(posts, hellos, strict=True)
        ]
        for post, (address, _) in zip(posts, homes, strict=True):
            post.say({"do": "ports", "address": address, "count": 1 + job.ranks_per_node})
        ports = [ports_of(post, told) for post, told in zip(posts, gather(posts, "ports"), strict=True)]
        seats = [
            Seat(post.node.name, address, interface, tuple(free[1:]), post.node.devices)
            for post, (address, interface), free in zip(posts, homes, ports, strict=True)
        ]
        master, self._first_port = self._first_port or ports[0][0], None
        return seats, master

    def _guessed_seat(self, job: Job, node: Node) -> Seat:
        interface = node.interface or self.interface or "(its interface)"
        return Seat(node.name, node.usual_address, interface, (0,) * job.ranks_per_node, node.devices)

    def _reach(self, node: Node) -> Post:
        return Post(node, self.carrier.reach(node, boot_command(node.python)))

    def _revisit(self, node: Node) -> Post:
        post = self._reach(node)
        post.patience = SWEEP_SECONDS
        return post


def greet(posts: Sequence[Post], limit: float) -> list[dict[str, Any] | NodeError]:
    """What each node says of itself, or why it does not; `offset` takes its monotonic clock to ours."""
    for post in posts:
        post.say({"do": "greet", "patience": PATIENCE_SECONDS})
    return [
        told if isinstance(told, NodeError) else hello_of(post, told[0])
        for post, told in zip(posts, gather(posts, "hello", limit), strict=True)
    ]


def hello_of(post: Post, said: Mapping[str, Any]) -> dict[str, Any] | NodeError:
    """What a node says is its word alone: nothing in it may break us."""
    since = time.time() - said["received"]
    try:
        addresses = {str(name): str(address) for name, address in said["addresses"].items()}
        offset = time.monotonic() - since - float(said["mono"])
        known = {"host": str(said["host"]), "reached_at": said["reached_at"] and str(said["reached_at"])}
        return {**known, "addresses": addresses, "offset": offset}
    except (KeyError, TypeError, ValueError, AttributeError):
        return NodeError(post.node.name, "its greeting is not understood")


def ports_of(post: Post, told: Message | NodeError) -> list[int]:
    if isinstance(told, NodeError):
        raise told
    try:
        return [int(port) for port in told[0]["ports"]]
    except (KeyError, TypeError, ValueError) as error:
        raise NodeError(post.node.name, "it names no ports") from error


def close(posts: Iterable[Post]) -> None:
    for post in posts:
        post.say({"do": "stop"})
        post.close()


def _send(post: Post, parcel: Parcel) -> str:
    digest = hashlib.sha256()
    for piece in parcel.pieces():
        digest.update(piece)
        post.say({"do": "piece"}, piece)
        post.catch_up(DELIVERY_SECONDS)
    post.say({"do": "unpack", "name": parcel.name, "sha256": digest.hexdigest()})
    ((answer, _),) = answers(gather([post], "have", DELIVERY_SECONDS))
    return str(answer["path"])
