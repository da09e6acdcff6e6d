"""The nodes of a run: what they can hold, must have alike and answer, and which of them fail."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainmark.base.errors import UserError
from trainmark.launch.asking import AskHere, AskNodes
from trainmark.launch.delivery import archive_of_environment
from trainmark.launch.job import Launcher
from trainmark.launch.launcher import ClusterLauncher, LocalLauncher
from trainmark.launch.nodes import NodeError
from trainmark.launch.options import LaunchOptions, launcher_of
from trainmark.machine.diagnosis import ESSENTIAL, Diagnosis, examine
from trainmark.machine.examination import Interpreter, NodeFacts, NodeInstallation, Wanted
from trainmark.runner.command import RankInterpreter, keep_code
from trainmark.runner.inventory import ANSWER_SECONDS, AnswerReader, Answers, Question, as_lines, this_machine
from trainmark.suite.model import Case
from trainmark.suite.plan import Resources
from trainmark.workloads.registry import Family


@dataclass(frozen=True)
class Cluster:
    """`device` names what its nodes have in common; `facts` are what each node said of itself."""

    choice: LaunchOptions
    launcher: ClusterLauncher
    machine: Resources
    device: str
    facts: Mapping[str, Any]

    @property
    def node_names(self) -> list[str]:
        return [node.name for node in self.launcher.nodes]

    def close(self) -> None:
        self.launcher.close()


@dataclass(frozen=True)
class LaunchTarget:
    """Where ranks can run: this machine or a cluster."""

    machine: Resources
    launcher: Launcher
    cluster: Cluster | None = None

    def close(self) -> None:
        if self.cluster is not None:
            self.cluster.close()


def launch_target(choice: LaunchOptions, pythons: Sequence[str]) -> LaunchTarget:
    if choice.is_local:
        return LaunchTarget(this_machine().machine, LocalLauncher(choice.port))
    cluster = examined_cluster(choice, pythons)
    return LaunchTarget(cluster.machine, cluster.launcher, cluster)


def examined_cluster(choice: LaunchOptions, pythons: Sequence[str]) -> Cluster:
    """The cluster, ready for ranks that run with `pythons`; refused where its nodes differ."""
    launcher = launcher_of(choice)
    try:
        return _examined(choice, launcher, pythons)
    except BaseException:
        launcher.close()
        raise


def _examined(choice: LaunchOptions, launcher: ClusterLauncher, pythons: Sequence[str]) -> Cluster:
    ask = AskNodes(launcher)
    wanted = Wanted(
        interpreters=tuple(Interpreter(Path(path).name, path) for path in pythons),
        interfaces={
            node.name: name for node in launcher.nodes if (name := node.interface or choice.interface)
        },
        meeting_seconds=0.0,
    )
    diagnosis = examine(ask, wanted, [check for check in ESSENTIAL if check.name not in BROUGHT])
    refuse_diagnosis(diagnosis)
    facts = dict(diagnosis.examined.facts())
    _refuse_unknown_interfaces(wanted.interfaces, facts)
    _bring_environments(launcher, pythons, facts)
    machine, device = _common(launcher, facts)
    return Cluster(choice, launcher, machine, device, diagnosis.as_dict())


# Where these differ, the environment is sent: it is compared here, with this machine's.
BROUGHT = frozenset({"interpreters", "environment hash", "framework versions"})


def refuse_diagnosis(diagnosis: Diagnosis) -> None:
    if not diagnosis.refusals:
        return
    refusals = [
        f"{each.node}: {each.what.rstrip('.')} ({each.fix.rstrip('.')})" for each in diagnosis.refusals
    ]
    more = f", and {len(refusals) - 3} more" if len(refusals) > 3 else ""
    raise UserError(
        f"the nodes cannot run together: {'; '.join(refusals[:3])}{more}; see `trainmark doctor`."
    )


def _refuse_unknown_interfaces(wanted: Mapping[str, str], facts: Mapping[str, NodeFacts]) -> None:
    for node, interface in wanted.items():
        if facts[node].interface is None:
            raise UserError(f"{node} has no interface {interface}; `ip link` there lists what it has.")


def _bring_environments(
    launcher: ClusterLauncher, pythons: Sequence[str], facts: Mapping[str, NodeFacts]
) -> None:
    """An interpreter that a node lacks, or has otherwise than we do, is sent there by its content."""
    if not pythons:
        return
    (here,) = examine(
        AskHere(), Wanted(tuple(Interpreter("python", path) for path in pythons)), ()
    ).examined.nodes
    assert here.facts is not None
    for path in pythons:
        ours = here.facts.interpreters.get(path)
        theirs = {name: each.interpreters.get(path) for name, each in facts.items()}
        if ours is None:
            _refuse_different(path, theirs)
            continue
        there = frozenset(
            name for name, installed in theirs.items() if installed and installed.hash == ours.hash
        )
        lacking = sorted(set(theirs) - there)
        if not lacking:
            continue
        folder = Path(path).parent.parent
        if not (folder / "pyvenv.cfg").is_file():
            raise UserError(
                f"{path} is not the same on {', '.join(lacking)} as here; install it there alike, "
                "or use an environment of its own (`trainmark frameworks install`), which is sent."
            )
        launcher.bring(archive_of_environment(folder, ours.hash, there))


def _refuse_different(path: str, theirs: Mapping[str, NodeInstallation | None]) -> None:
    """An interpreter that only the nodes have, such as one of a shared file system."""
    if missing := sorted(name for name, installed in theirs.items() if installed is None):
        raise UserError(f"{path} is not on {', '.join(missing)}; install it there.")
    if len({installed.hash for installed in theirs.values() if installed}) > 1:
        raise UserError(f"{path} has not the same packages on all nodes; `trainmark doctor` shows where.")


def _common(launcher: ClusterLauncher, facts: Mapping[str, NodeFacts]) -> tuple[Resources, str]:
    """The least that every node has; the kind of device must be the same on all."""
    slots = {node.name: node.slots for node in launcher.nodes}
    gpus = {name: len(each.gpus) for name, each in facts.items()}
    if any(gpus.values()) and not all(gpus.values()):
        without = sorted(name for name, count in gpus.items() if not count)
        raise UserError(f"{', '.join(without)} has no GPU and the others have; leave it out of the hosts.")
    kind = "cuda" if any(gpus.values()) else "cpu"
    names = {gpu.name for each in facts.values() for gpu in each.gpus} or {
        each.host.processor or "cpu" for each in facts.values()
    }
    if len(names) > 1:
        raise UserError(f"the nodes are not alike: {'; '.join(sorted(names))}; choose nodes of one kind.")
    cores = {name: max(1, int(each.host.cpu_quota or each.host.cpus)) for name, each in facts.items()}
    most = gpus if kind == "cuda" else cores
    for name, wanted in slots.items():
        if wanted is not None and wanted > most[name]:
            raise UserError(f"{name} has {most[name]} devices, not {wanted}; mend its slots.")
    devices = min(slots[name] or most[name] for name in facts)
    return Resources(kind, devices, nodes=len(facts), cores=min(cores.values())), names.pop()


class AskFrameworkOnNodes:
    """Takes the place of `ask` where the ranks will run on other machines."""

    def __init__(self, launcher: ClusterLauncher) -> None:
        self._launcher = launcher

    def __call__(
        self, interpreter: RankInterpreter, family: Family, framework: str, questions: Sequence[Question]
    ) -> Answers:
        given = as_lines(questions).encode()
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
        if message["code"] == 0 and (answers := heard.answers(count)):
            return answers
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
