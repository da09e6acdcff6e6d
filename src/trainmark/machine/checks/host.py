"""Processors, load, memory, limits of processes, and room on the disk."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from trainmark.machine.examination import Examination, ResourceLimit, most_common
from trainmark.machine.findings import (
    GIB,
    LOAD_PER_CPU,
    MEMORY_AVAILABLE_BYTES,
    OPEN_FILES,
    OPEN_FILES_SUGGESTED,
    SCRATCH_BAD_BYTES,
    SCRATCH_WARN_BYTES,
    SHARED_MEMORY_OF_DOCKER,
    SHARED_MEMORY_PER_GPU,
    CheckArea,
    NodeFinding,
    NodeReport,
    format_bytes,
    node_check,
)


@node_check("processors", CheckArea.HOST)
def processors(examined: Examination) -> Iterator[NodeFinding]:
    machine = most_common(examined.each(lambda facts: facts.host.machine))
    cpus = most_common(examined.each(lambda facts: facts.host.cpus))
    for node, facts in examined.facts():
        host = facts.host
        value = f"{host.cpus} × {host.machine}" + (f", {host.governor}" if host.governor else "")
        report = NodeReport(node, value)
        if host.machine != machine:
            what = f"it is {host.machine}, the others are {machine}"
            report.bad(what, f"leave it out with --exclude {node}")
            yield from report
            continue
        if host.cpus != cpus:
            report.warn(
                f"{host.cpus} processors may be used, on the others {cpus}",
                f"on {node}: compare `nproc` and `nproc --all`, and what the batch system gives",
            )
        if host.cpu_quota is not None and host.cpu_quota < host.cpus:
            report.warn(
                f"a control group allows {host.cpu_quota:g} of {host.cpus} processors",
                "start the container with a larger `--cpus`, or ask the batch system for more",
            )
        if host.governor not in (None, "performance"):
            what = f"the governor of its processors is {host.governor}"
            report.warn(what, f"on {node}: `sudo cpupower frequency-set -g performance`")
        yield from report


@node_check("load", CheckArea.HOST)
def load(examined: Examination) -> Iterator[NodeFinding]:
    for node, facts in examined.facts():
        host = facts.host
        report = NodeReport(node, f"{host.load:.1f}")
        if host.load > LOAD_PER_CPU * host.cpus:
            report.warn(
                f"a load of {host.load:.1f} on {host.cpus} processors: something else is at work",
                f"on {node}: `ps -eo pid,user,pcpu,args --sort=-pcpu | head` names it",
            )
        yield from report


@node_check("memory", CheckArea.HOST)
def memory(examined: Examination) -> Iterator[NodeFinding]:
    for node, facts in examined.facts():
        amounts = [facts.host.memory_available, facts.host.memory_limit]
        usable = min((amount for amount in amounts if amount is not None), default=None)
        report = NodeReport(node, "not told" if usable is None else f"{format_bytes(usable)} free")
        if usable is not None and usable < MEMORY_AVAILABLE_BYTES:
            report.warn(
                f"{format_bytes(usable)} of memory can be had",
                f"on {node}: `ps -eo pid,user,rss,args --sort=-rss | head` names who has it; in a container, "
                "raise `--memory`",
                format_bytes(usable),
            )
        yield from report


@node_check("shared memory", CheckArea.HOST)
def shared_memory(examined: Examination) -> Iterator[NodeFinding]:
    for node, facts in examined.facts():
        space = facts.shared_memory
        if space.total is None or space.free is None:
            report = NodeReport(node, "none")
            report.bad("there is no /dev/shm", f"on {node}: `sudo mount -t tmpfs shm /dev/shm`")
            yield from report
            continue
        needed = SHARED_MEMORY_PER_GPU * max(1, len(facts.gpus))
        report = NodeReport(node, format_bytes(space.total))
        if space.total < needed:
            is_bad = space.total <= SHARED_MEMORY_OF_DOCKER or facts.gpus
            (report.bad if is_bad else report.warn)(
                f"/dev/shm has {report.value}, and {needed // GIB} GiB are wanted",
                f"start the container with `--ipc=host` or `--shm-size={needed // GIB}g`; "
                f"without one, on {node}: `sudo mount -o remount,size={needed // GIB}G /dev/shm`",
            )
        elif space.free < needed:
            report.warn(
                f"of the {report.value} in /dev/shm only {format_bytes(space.free)} are free",
                f"on {node}: `ls -lS /dev/shm | head` shows what lies there; remove what no process uses",
            )
        yield from report


@node_check("locked memory", CheckArea.HOST)
def locked_memory(examined: Examination) -> Iterator[NodeFinding]:
    for node, facts in examined.facts():
        soft = facts.locked_memory.soft
        report = NodeReport(node, "unlimited" if soft is None else format_bytes(soft))
        if soft is not None and facts.infiniband:
            report.bad(
                f"a process may lock {format_bytes(soft)} of memory, "
                "and InfiniBand needs all of its buffers locked",
                f"on {node}: `echo '* - memlock unlimited' | sudo tee /etc/security/limits.d/memlock.conf`, "
                "then log in anew; in a container, `--ulimit memlock=-1`; under Slurm, "
                "LimitMEMLOCK=infinity in slurmd's unit",
            )
        yield from report


@node_check("open files", CheckArea.HOST)
def open_files(examined: Examination) -> Iterator[NodeFinding]:
    for node, facts in examined.facts():
        soft = facts.open_files.soft
        report = NodeReport(node, "unlimited" if soft is None else f"{soft:,}")
        if soft is not None and soft < OPEN_FILES:
            what = f"a process may open {report.value} files, and {OPEN_FILES:,} or more are wanted"
            report.warn(what, f"on {node}: {_open_files_fix(facts.open_files)}")
        yield from report


def _open_files_fix(limit: ResourceLimit) -> str:
    if limit.hard is None or limit.hard >= OPEN_FILES:
        return f"`ulimit -n {min(OPEN_FILES_SUGGESTED, limit.hard or OPEN_FILES_SUGGESTED)}` in ~/.profile"
    return (
        f"`echo '* - nofile {OPEN_FILES_SUGGESTED}' | sudo tee /etc/security/limits.d/nofile.conf`, "
        f"then log in anew; in a container, `--ulimit nofile={OPEN_FILES_SUGGESTED}`"
    )


@node_check("scratch", CheckArea.HOST)
def scratch(examined: Examination) -> Iterator[NodeFinding]:
    for node, facts in examined.facts():
        path, free = facts.scratch.path, facts.scratch.free
        report = NodeReport(node, "none" if free is None else f"{format_bytes(free)} free")
        fix = f"on {node}: `du -xh {shlex.quote(path)} | sort -h | tail` shows what can go"
        if free is None:
            report.bad(f"there is no folder {path}", f"on {node}: `mkdir -p {shlex.quote(path)}`")
        elif free < SCRATCH_BAD_BYTES:
            report.bad(f"{path} is full but for {report.value}", fix)
        elif free < SCRATCH_WARN_BYTES:
            report.warn(f"{path} has only {report.value}", fix)
        yield from report
