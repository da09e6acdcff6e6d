"""The machine that we are on, as a plan sees it and as results name it."""

from __future__ import annotations

from dataclasses import dataclass

from trainmark.machine.devices import local_devices
from trainmark.machine.host import read_host
from trainmark.suite.plan import Resources


@dataclass(frozen=True)
class ThisMachine:
    """`device` names it in results; `gpus` count its GPUs as the driver does."""

    machine: Resources
    device: str
    gpus: tuple[int, ...]


def this_machine() -> ThisMachine:
    here = local_devices()
    cores = max(1, int(here.cpu_cores))
    return ThisMachine(
        machine=Resources(here.kind, len(here.cuda) or cores, cores=cores),
        device=here.cuda[0].name if here.cuda else read_host().cpu.model or "cpu",
        gpus=tuple(device.index for device in here.cuda),
    )
