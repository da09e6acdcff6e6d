"""Agents whose words are written by the test: a channel that is two pipes, and messages as they travel."""

from __future__ import annotations

import json
import os

from trainmark.launch.nodes import NodeError


class Pipes:
    """A channel whose far end is in our hands."""

    pid = None

    def __init__(self) -> None:
        self.incoming, self.says = os.pipe()
        self.hears, self.outgoing = os.pipe()

    def last_words(self) -> str:
        return ""

    def close(self, patient: bool = True) -> int | None:
        for end in (self.incoming, self.says, self.hears, self.outgoing):
            os.close(end)
        return None


def unreachable(node):
    raise NodeError(node.name, "no")


def encoded(message, payload=b""):
    if payload:
        message = {**message, "bytes": len(payload)}
    return json.dumps(message).encode() + b"\n" + payload
