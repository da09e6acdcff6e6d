"""The nodes of a run, examined before it: what they can hold, and what must be the same on all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainmark.base.errors import UserError
from trainmark.launch.asking import AskHere, AskNodes
from trainmark.launch.delivery import archive_of_environment
from trainmark.launch.job import Launcher
from trainmark.launch.launcher import ClusterLauncher, LocalLauncher
from trainmark.launch.options import LaunchOptions, launcher_of
from trainmark.machine.diagnosis import ESSENTIAL, Diagnosis, examine
from trainmark.machine.examination import Interpreter, NodeFacts, NodeInstallation, Wanted
from trainmark.runner.inventory import this_machine
from trainmark.suite.plan import Resources


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
