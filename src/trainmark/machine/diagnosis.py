"""From what the nodes told to what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from trainmark.machine import checks as all_checks
from trainmark.machine import reach
from trainmark.machine.examination import Asker, Examination, NodeDataset, Reply, Wanted, node_of
from trainmark.machine.findings import FindingMark, NodeCheck, NodeFinding
from trainmark.machine.node_program import program

FACTS = "machine.facts_on_node"
DATA_PROGRAM = "machine.data_on_node"


def _in_order(checks: Iterable[NodeCheck]) -> tuple[NodeCheck, ...]:
    return tuple(sorted(checks, key=lambda check: (check.about, check.name.lower())))


# Every check in a file of checks/ is run: a new one is known by standing there.
CHECKS = _in_order(
    value
    for module in iter_modules(all_checks.__path__, f"{all_checks.__name__}.")
    for value in vars(import_module(module.name)).values()
    if isinstance(value, NodeCheck)
)
# Reading all of a dataset of 150 GB from a slow disk.
DEEP_SECONDS = 3600.0
ESSENTIAL = tuple(check for check in CHECKS if check.essential)


@dataclass(frozen=True)
class Diagnosis:
    examined: Examination
    findings: tuple[NodeFinding, ...]

    @property
    def is_healthy(self) -> bool:
        """Nothing red; warnings are allowed."""
        return not any(finding.mark is FindingMark.BAD for finding in self.findings)

    @property
    def refusals(self) -> tuple[NodeFinding, ...]:
        """What a run over these nodes must not begin with."""
        names = {check.name for check in ESSENTIAL}
        return tuple(each for each in self.findings if each.mark is FindingMark.BAD and each.check in names)

    def as_dict(self) -> dict[str, Any]:
        return {
            "healthy": self.is_healthy,
            "findings": [finding.as_dict() for finding in self.findings],
            "nodes": [
                {
                    "node": node.name,
                    "trouble": node.trouble,
                    "offset": vars(node.offset) if node.offset else None,
                    "facts": node.answer,
                }
                for node in self.examined.nodes
            ],
            "calls": [vars(call) for call in self.examined.calls],
        }


def examine(ask: Asker, wanted: Wanted, checks: Iterable[NodeCheck] = CHECKS) -> Diagnosis:
    """Asks every node for its facts, lets them call on each other, and judges."""
    questions = [question(node, wanted) for node in ask.nodes]
    replies = ask(program(FACTS), questions, wanted.seconds)
    if wanted.dataset is not None:
        replies = with_dataset(ask, replies, wanted.dataset, wanted)
    nodes = tuple(node_of(reply) for reply in replies)
    return diagnose(Examination(wanted, nodes, reach.hold(ask, nodes, wanted)), checks)


def question(node: str, wanted: Wanted) -> dict[str, Any]:
    return {
        "interpreters": [interpreter.path for interpreter in wanted.interpreters],
        "address": wanted.addresses.get(node),
        "interface": wanted.interfaces.get(node),
        "ports": wanted.ports,
        "scratch": wanted.scratch,
    }


def with_dataset(ask: Asker, replies: Sequence[Reply], path: str, wanted: Wanted) -> list[Reply]:
    """A question of its own: it may take long, and what keeps it from an answer is no fault of the rest."""
    questions = [{"path": path, "deep": wanted.deep} for _ in replies]
    limit = DEEP_SECONDS if wanted.deep else wanted.seconds
    data_replies = ask(program(DATA_PROGRAM), questions, limit)
    return [
        replace(reply, answer={**reply.answer, "dataset": data.answer or unknown_dataset(path, data)})
        if reply.answer is not None
        else reply
        for reply, data in zip(replies, data_replies, strict=True)
    ]


def unknown_dataset(path: str, reply: Reply) -> dict[str, Any]:
    return vars(NodeDataset(path, True, 0, 0, None, None, f"{path} could not be read: {reply.trouble}"))


def diagnose(examined: Examination, checks: Iterable[NodeCheck] = CHECKS) -> Diagnosis:
    findings = [replace(finding, check=check.name) for check in checks for finding in check.find(examined)]
    return Diagnosis(examined, tuple(findings))
