"""The nodes of a run: asked what their frameworks can carry out, counted when they fail, and left out."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from trainmark.base.errors import UserError
from trainmark.launch.launcher import ClusterLauncher
from trainmark.launch.nodes import NodeError
from trainmark.runner.cluster import Cluster
from trainmark.runner.preflight import ANSWER_SECONDS, AnswerReader, Answers, Question
from trainmark.runner.program import RankInterpreter, keep_code
from trainmark.suite.model import Case
from trainmark.workloads.registry import Family


class AskFrameworkOnNodes:
    """Takes the place of `ask` where the ranks will run on other machines."""

    def __init__(self, launcher: ClusterLauncher) -> None:
        self._launcher = launcher

    def __call__(
        self, interpreter: RankInterpreter, family: Family, framework: str, questions: Sequence[Question]
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
                    ANSWER_SECONDS,
                    {"PYTHONPATH": str(code)},
                )
        node_answers = [
            self._understood(node.name, each, len(questions))
            for node, each in zip(nodes, responses, strict=True)
        ]
        return _joined_answers([node.name for node in nodes], node_answers, len(questions))

    def _understood(self, node: str, response: Any, count: int) -> Answers:
        if isinstance(response, NodeError):
            return Answers(silent=f"{node}: {response.reason}")
        message, output = response
        heard = AnswerReader()
        for line in output.decode("utf-8", "replace").splitlines():
            heard.line(line)
        if message["code"] == 0 and heard.facts is not None and len(heard.refusals) == count:
            return Answers(heard.facts, tuple(heard.refusals))
        lines = [line.strip() for line in message["errors"].splitlines() if line.strip()]
        return Answers(silent=f"on {node}: {lines[-1] if lines else 'it did not answer'}")


def _joined_answers(nodes: Sequence[str], node_answers: Sequence[Answers], count: int) -> Answers:
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


# Once may be chance; a node that fails again would cost every trial to come.
FAILURES_TO_LEAVE_OUT = 2


class AllocationGoneError(RuntimeError):
    """No node can be reached any more: a scheduler took them all back."""


class NodeFailures:
    def __init__(self, cluster: Cluster | None) -> None:
        self._cluster = cluster
        self._failures: Counter[str] = Counter()
        self._noted_slugs: set[str] = set()

    def lost(self, node: str | None, wanted: int, note: Callable[[str], None]) -> bool:
        """Whether the trial is worth another try: without the node there are still enough others."""
        # An allocation that was taken back says nothing of its nodes.
        if self._cluster is None or node is None or self._cluster.launcher.gone():
            return False
        self._failures[node] += 1
        if not self._cluster.choice.exclude_bad_nodes or node not in self._cluster.node_names:
            return False
        if self._failures[node] < FAILURES_TO_LEAVE_OUT:
            # A second try tells chance from a broken node.
            return True
        self._cluster.launcher.left_out.add(node)
        left = self._cluster.node_names
        note(f"{node} failed {FAILURES_TO_LEAVE_OUT} times and is left out; {len(left)} nodes are left")
        return len(left) >= wanted

    def too_few_for(self, case: Case, note: Callable[[str], None]) -> bool:
        """Whether the case has lost the nodes it needs, said once."""
        if self._cluster is None or not self._cluster.launcher.left_out:
            return False
        left, needed = len(self._cluster.node_names), case.topology.nodes
        if needed <= left:
            return False
        if case.slug not in self._noted_slugs:
            self._noted_slugs.add(case.slug)
            out = ", ".join(sorted(self._cluster.launcher.left_out))
            note(f"skipped {case.slug}: needs {needed} nodes; {left} are left without {out}")
        return True

    def require_allocation(self) -> None:
        if self._cluster is not None and (gone := self._cluster.launcher.gone()):
            raise AllocationGoneError(gone)
