"""Whether nodes reach each other: which calls on which, and what came of it."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainmark.machine.examination import Asker, ExaminedNode, NodeCall, Reply, Wanted
from trainmark.machine.node_program import program

PROGRAM = "machine.reach_on_node"
# What it may take to start the program on a node, beside the meeting itself.
START_SECONDS = 15.0
# Up to so many nodes every one calls on every other; of more, that would be a million connections.
ALL_PAIRS_UP_TO = 64
# What one node more costs whoever asks all of them at the same time.
SECONDS_PER_NODE = 0.02


@dataclass(frozen=True)
class MeetingNode:
    node: str
    address: str
    port: int


def hold(ask: Asker, nodes: Sequence[ExaminedNode], wanted: Wanted) -> tuple[NodeCall, ...]:
    """Every node that answered calls on its peers; none where there are no two."""
    places = places_of(nodes)
    if len(places) < 2 or not wanted.meeting_seconds:
        return ()
    token = secrets.token_hex(16)
    seconds = wanted.meeting_seconds + len(places) * SECONDS_PER_NODE
    questions = [question(places.get(node.name), places, token, seconds) for node in nodes]
    replies = ask(program(PROGRAM), questions, seconds + START_SECONDS)
    return tuple(call for reply in replies if reply.node in places for call in calls_of(reply, places))


def places_of(nodes: Sequence[ExaminedNode]) -> dict[str, MeetingNode]:
    """A free port on each node's own address; nodes that share an address get different ones."""
    places: dict[str, MeetingNode] = {}
    taken: set[tuple[str, int]] = set()
    for node in nodes:
        facts = node.facts
        if facts is None or facts.address is None:
            continue
        free = (
            port for port, is_free in facts.ports.items() if is_free and (facts.address, port) not in taken
        )
        if (port := next(free, None)) is not None:
            places[node.name] = MeetingNode(node.name, facts.address, port)
            taken.add((facts.address, port))
    return places


def peers_of(node: str, places: Mapping[str, MeetingNode]) -> list[MeetingNode]:
    """Whom a node calls on: all others; of very many the first, and those 1, 2, 4, … places on either side.

    Whoever calls is called by the same: each direction of a pair is tried, and each knows whom to wait for.
    Every node is still called from a dozen others or more, so one that a firewall shuts off is found; a
    fault between two nodes alone may be missed.
    """
    others = [place for place in places.values() if place.node != node]
    if len(places) <= ALL_PAIRS_UP_TO:
        return others
    ring = list(places)
    first, here = ring[0], ring.index(node)
    if node == first:
        return others
    strides = [1 << power for power in range(len(ring).bit_length() - 1)]
    near = {ring[(here + sign * stride) % len(ring)] for stride in strides for sign in (1, -1)}
    return [place for place in others if place.node in near or place.node == first]


def question(
    place: MeetingNode | None, places: Mapping[str, MeetingNode], token: str, seconds: float
) -> dict[str, Any]:
    """Empty for a node that does not take part."""
    if place is None:
        return {}
    peers = [vars(other) for other in peers_of(place.node, places)]
    return {**vars(place), "peers": peers, "token": token, "seconds": seconds}


def calls_of(reply: Reply, places: Mapping[str, MeetingNode]) -> Iterator[NodeCall]:
    answer = reply.answer or {}
    for place in peers_of(reply.node, places):
        reached = answer.get("reached", {}).get(place.node)
        failed = reply.trouble or answer.get("failed", {}).get(place.node, "not tried")
        yield NodeCall(
            caller=reply.node,
            called=place.node,
            address=place.address,
            port=place.port,
            seconds=reached["seconds"] if reached else None,
            ahead=reached["ahead"] if reached else None,
            trouble=None if reached else failed,
        )
