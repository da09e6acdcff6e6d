"""Asks a workload on every node of a cluster, and makes one answer of theirs."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trainmark.base.errors import UserError
from trainmark.launch.launcher import ClusterLauncher
from trainmark.launch.nodes import NodeError
from trainmark.runner.program.ask import SECONDS, Answers, Listening, Question
from trainmark.runner.program.code import keep_code
from trainmark.runner.program.interpreter import Interpreter
from trainmark.workloads.registry import Family


class NodesAsked:
    """Takes the place of `ask` where the ranks will run on other machines."""

    def __init__(self, launcher: ClusterLauncher) -> None:
        self._launcher = launcher

    def __call__(
        self, interpreter: Interpreter, family: Family, framework: str, questions: Sequence[Question]
    ) -> Answers:
        given = "".join(f"{json.dumps(vars(question))}\n" for question in questions).encode()
        nodes = self._launcher.nodes
        with tempfile.TemporaryDirectory(prefix="trainmark-") as folder:
            code = Path(folder) / "code"
            keep_code(code, [family])
            with self._launcher.shipped(code):
                responses = self._launcher.ask(
                    nodes,
                    interpreter.command(("-m", family.module(framework), "--check"), code, code),
                    [given] * len(nodes),
                    SECONDS,
                    {"PYTHONPATH": str(code)},
                )
        node_answers = [
            self._understood(node.name, each, len(questions))
            for node, each in zip(nodes, responses, strict=True)
        ]
        return _joined([node.name for node in nodes], node_answers, len(questions))

    def _understood(self, node: str, response: Any, count: int) -> Answers:
        if isinstance(response, NodeError):
            return Answers(silent=f"{node}: {response.reason}")
        message, output = response
        heard = Listening()
        for line in output.decode("utf-8", "replace").splitlines():
            heard.line(line)
        if message["code"] == 0 and heard.facts is not None and len(heard.refusals) == count:
            return Answers(heard.facts, tuple(heard.refusals))
        lines = [line.strip() for line in message["errors"].splitlines() if line.strip()]
        return Answers(silent=f"on {node}: {lines[-1] if lines else 'it did not answer'}")


def _joined(nodes: Sequence[str], node_answers: Sequence[Answers], count: int) -> Answers:
    """The first node's, once all say the same; a question refused by one is refused."""
    for answers in node_answers:
        if answers.silent is not None:
            return answers
    for key in ("framework_version", "device_name"):
        values = {node: each.facts.get(key) for node, each in zip(nodes, node_answers, strict=True)}
        if len(set(map(str, values.values()))) > 1:
            listed = ", ".join(f"{node} {value}" for node, value in values.items())
            raise UserError(f"the nodes differ in their {key.replace('_', ' ')}: {listed}; make them alike.")
    refusals = []
    for index in range(count):
        each = [
            f"{node}: {answers.refusals[index]}"
            for node, answers in zip(nodes, node_answers, strict=True)
            if answers.refusals[index] is not None
        ]
        refusals.append(each[0] if each else None)
    return Answers(node_answers[0].facts, tuple(refusals))
