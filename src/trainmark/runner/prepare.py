"""Everything that must be known before the first trial: the suite, the machine, and what can run on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trainmark.errors import nearest
from trainmark.readers import registry
from trainmark.runner.command import filled_in
from trainmark.runner.preflight import preflight
from trainmark.suite import load
from trainmark.suite.errors import SuiteError
from trainmark.suite.model import Case, Command, Suite
from trainmark.suite.plan import Machine, Plan, plan
from trainmark.system.available import Inventory, local_devices
from trainmark.system.host import read_host


@dataclass(frozen=True)
class Prepared:
    """`device` names this machine's in results, `gpus` count them as the driver does; `facts` are by case."""

    suite: Suite
    plan: Plan
    machine: Machine
    device: str
    gpus: tuple[int, ...]
    facts: Mapping[str, Mapping[str, Any]]


def prepare(name: str, overrides: Sequence[str] = ()) -> Prepared:
    here = local_devices()
    return _checked(load.load(name, overrides, _machine(here).devices), here)


def prepare_again(text: str, folder: str | None) -> Prepared:
    """A run's own suite, for going on with it."""
    here = local_devices()
    suite = load.parse(text, "suite.yaml", devices_here=_machine(here).devices)
    return _checked(replace(suite, folder=folder), here)


def _checked(suite: Suite, here: Inventory) -> Prepared:
    for case in suite.cases:
        _check_command(case)
    machine = _machine(here)
    checked = preflight(plan(suite, machine))
    name = here.cuda[0].name if here.cuda else read_host().cpu.model or "cpu"
    gpus = tuple(device.index for device in here.cuda)
    return Prepared(suite, checked.plan, machine, name, gpus, checked.facts)


def _machine(here: Inventory) -> Machine:
    cores = max(1, int(here.cpu_cores))
    return Machine(here.kind, len(here.cuda) or cores, cores=cores)


def _check_command(case: Case) -> None:
    if isinstance(case.workload, Command):
        if case.workload.reader not in registry.names():
            known = nearest(case.workload.reader, registry.names())
            raise SuiteError(f"there is no reader '{case.workload.reader}'{known}")
        filled_in(case.workload.line, case)
