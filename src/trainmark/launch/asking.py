"""Asking nodes: one small program, standard library only, run on every node at the same time."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from trainmark.launch.agent.wire import Message
from trainmark.launch.nodes import NodeError
from trainmark.machine.examination import Reply

if TYPE_CHECKING:
    from trainmark.launch.launcher import ClusterLauncher


class AskHere:
    """This machine, as a cluster of one."""

    nodes: Sequence[str] = (socket.gethostname(),)

    def __call__(self, program: str, given: Sequence[dict[str, Any]], limit: float) -> list[Reply]:
        sent = time.time()
        try:
            done = subprocess.run(
                [sys.executable, "-E", "-s", "-c", program],
                input=json.dumps(given[0]),
                capture_output=True,
                text=True,
                timeout=limit,
            )
        except subprocess.TimeoutExpired:
            return [Reply(self.nodes[0], None, f"did not answer within {limit:.0f} s", sent, time.time())]
        answer, trouble = parse_answer(done.stdout, done.stderr)
        return [Reply(self.nodes[0], answer, trouble, sent, time.time())]


class AskNodes:
    """The nodes of a cluster, each by an agent of its own; one that cannot be reached says why."""

    def __init__(self, launcher: ClusterLauncher) -> None:
        self._launcher = launcher
        self._members = launcher.nodes
        self.nodes: Sequence[str] = [node.name for node in self._members]

    def __call__(self, program: str, given: Sequence[dict[str, Any]], limit: float) -> list[Reply]:
        command = ["{python}", "-E", "-s", "-c", program]
        payloads = [json.dumps(each).encode() for each in given]
        responses = self._launcher.ask(self._members, command, payloads, limit)
        return [_reply(node, each, limit) for node, each in zip(self.nodes, responses, strict=True)]


def _reply(node: str, response: Message | NodeError, limit: float) -> Reply:
    if isinstance(response, NodeError):
        return Reply(node, None, response.reason, time.time(), time.time())
    message, output = response
    sent, received = message["sent"], message["received"]
    if message["code"] is None:
        return Reply(node, None, f"did not answer within {limit:.0f} s", sent, received)
    answer, trouble = parse_answer(output.decode("utf-8", "replace"), message["errors"])
    return Reply(node, answer, trouble, sent, received)


def parse_answer(output: str, errors: str) -> tuple[dict[str, Any] | None, str | None]:
    """The one JSON object on the last line, or the last line that was said instead."""
    lines = output.strip().splitlines()
    try:
        answer = json.loads(lines[-1]) if lines else None
    except ValueError:
        answer = None
    if isinstance(answer, dict):
        return answer, None
    message_lines = (errors.strip() or output.strip()).splitlines()
    return None, message_lines[-1] if message_lines else "said nothing"
