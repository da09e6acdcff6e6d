"""Everything that must be known before the first trial: the suite, the machine, and what can run on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainmark.readers import registry
from trainmark.runner.command import filled_in
from trainmark.runner.preflight import preflight
from trainmark.suite import load
from trainmark.suite.errors import SuiteError, nearest
from trainmark.suite.model import Case, Command, Suite
from trainmark.suite.plan import Machine, Plan, plan


@dataclass(frozen=True)
class Prepared:
    """`device` names this machine in results; `facts` are what the frameworks say, by case."""

    suite: Suite
    plan: Plan
    machine: Machine
    device: str
    facts: Mapping[str, Mapping[str, Any]]


def machine_here() -> tuple[Machine, str]:
    from trainmark.system.available import local_devices
    from trainmark.system.host import read_host

    found = local_devices()
    cores = max(1, int(found.cpu_cores))
    if found.cuda:
        return Machine("cuda", len(found.cuda), cores=cores), found.cuda[0].name
    return Machine("cpu", cores, cores=cores), read_host().cpu.model or "cpu"


def prepare(name: str, overrides: Sequence[str] = ()) -> Prepared:
    machine, device = machine_here()
    return _checked(load.load(name, overrides, machine.devices), machine, device)


def prepare_again(text: str, folder: str | None) -> Prepared:
    """A run's own suite, for going on with it."""
    machine, device = machine_here()
    suite = load.parse(text, "suite.yaml", devices_here=machine.devices)
    return _checked(
        Suite(suite.name, suite.about, suite.cases, suite.seed, suite.text, folder), machine, device
    )


def _checked(suite: Suite, machine: Machine, device: str) -> Prepared:
    for case in suite.cases:
        _check_command(case)
    checked = preflight(plan(suite, machine))
    return Prepared(suite, checked.plan, machine, device, checked.facts)


def _check_command(case: Case) -> None:
    if isinstance(case.workload, Command):
        if case.workload.reader not in registry.names():
            known = nearest(case.workload.reader, registry.names())
            raise SuiteError(f"there is no reader '{case.workload.reader}'{known}")
        filled_in(case.workload.line, case)
