"""Whether somebody is already at work on the GPUs."""

from __future__ import annotations

from collections.abc import Iterator

from trainmark.doctor.examined import Examined
from trainmark.doctor.facts import Facts
from trainmark.doctor.finding import About, Check, Finding, bad, ok, warn
from trainmark.doctor.limits import IDLE_MEMORY_MIB


def find(examined: Examined) -> Iterator[Finding]:
    for node, facts in examined.facts():
        if facts.gpus:
            yield from _of(node, facts)


def _of(node: str, facts: Facts) -> Iterator[Finding]:
    index = {gpu.uuid: gpu.index for gpu in facts.gpus}
    for process in facts.gpu_processes:
        pid = f"{process.pid:.0f}" if process.pid is not None else "PID"
        memory = f", {process.memory_mib:.0f} MiB" if process.memory_mib is not None else ""
        yield bad(
            node,
            f"{len(facts.gpu_processes)} at work",
            f"process {pid} ({process.name or 'name not told'}{memory}) is on "
            f"GPU {index.get(process.uuid, '?')}",
            f"on {node}: let it end, or `kill {pid}` if it is yours",
        )
    if facts.gpu_processes:
        return
    gpus_in_use = [gpu for gpu in facts.gpus if (gpu.memory_used_mib or 0.0) > IDLE_MEMORY_MIB]
    for gpu in gpus_in_use:
        yield warn(
            node,
            "memory held",
            f"GPU {gpu.index} has {gpu.memory_used_mib:.0f} MiB in use by no process that can be seen",
            f"on {node}: outside of the container, `sudo fuser -v /dev/nvidia{gpu.index}` names it",
        )
    if not gpus_in_use:
        yield ok(node, "none")


CHECK = Check("processes on devices", About.DEVICES, find)
