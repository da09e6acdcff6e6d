"""The meeting of the nodes: who is to call whom, and what came of it."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainmark.doctor.examined import Call
from trainmark.doctor.facts import Node
from trainmark.doctor.wanted import Wanted
from trainmark.launch.asking import Asker, Reply

PROGRAM = Path(__file__).with_name("meet.py")
# What it may take to start the program on a node, beside the meeting itself.
START_SECONDS = 15.0


@dataclass(frozen=True)
class Place:
    node: str
    address: str
    port: int


def hold(ask: Asker, nodes: Sequence[Node], wanted: Wanted) -> tuple[Call, ...]:
    """Every node that answered calls on every other; none where there are no two."""
    places = places_of(nodes)
    if len(places) < 2 or not wanted.meeting_seconds:
        return ()
    token = secrets.token_hex(16)
    questions = [question(places.get(node.name), places, token, wanted.meeting_seconds) for node in nodes]
    replies = ask(PROGRAM.read_text(encoding="utf-8"), questions, wanted.meeting_seconds + START_SECONDS)
    return tuple(call for reply in replies if reply.node in places for call in calls_of(reply, places))


def places_of(nodes: Sequence[Node]) -> dict[str, Place]:
    """A free port on each node's own address; nodes that share an address get different ones."""
    places: dict[str, Place] = {}
    for node in nodes:
        facts = node.facts
        if facts is None or facts.address is None:
            continue
        taken = {(place.address, place.port) for place in places.values()}
        free = (
            port for port, is_free in facts.ports.items() if is_free and (facts.address, port) not in taken
        )
        if (port := next(free, None)) is not None:
            places[node.name] = Place(node.name, facts.address, port)
    return places


def question(place: Place | None, places: Mapping[str, Place], token: str, seconds: float) -> dict[str, Any]:
    """Empty for a node that does not take part."""
    if place is None:
        return {}
    peers = [vars(other) for other in places.values() if other.node != place.node]
    return {**vars(place), "peers": peers, "token": token, "seconds": seconds}


def calls_of(reply: Reply, places: Mapping[str, Place]) -> Iterator[Call]:
    answer = reply.answer or {}
    for place in places.values():
        if place.node != reply.node:
            reached = answer.get("reached", {}).get(place.node)
            failed = reply.trouble or answer.get("failed", {}).get(place.node, "not tried")
            yield Call(
                caller=reply.node,
                called=place.node,
                address=place.address,
                port=place.port,
                seconds=reached["seconds"] if reached else None,
                ahead=reached["ahead"] if reached else None,
                trouble=None if reached else failed,
            )
