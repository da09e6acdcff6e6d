"""Processors, load, memory, limits of processes, and room on the disk."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from trainmark.machine.examination import Examination, NodeFacts, NodeHost, ResourceLimit, most_common
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
    NodeCheck,
    NodeFinding,
    bad,
    format_bytes,
    ok,
    warn,
)


def find_processors(examined: Examination) -> Iterator[NodeFinding]:
    machine = most_common(examined.each(lambda facts: facts.host.machine))
    cpus = most_common(examined.each(lambda facts: facts.host.cpus))
    for node, facts in examined.facts():
        host = facts.host
        value = f"{host.cpus} × {host.machine}" + (f", {host.governor}" if host.governor else "")
        if host.machine != machine:
            what = f"it is {host.machine}, the others are {machine}"
            yield bad(
                node,
                value,
                what,
                f"leave it out with --exclude {node}",
            )
        elif warnings := list(_processor_warnings(node, host, value, cpus)):
            yield from warnings
        else:
            yield ok(node, value)


def _processor_warnings(node: str, host: NodeHost, value: str, cpus: int | None) -> Iterator[NodeFinding]:
    if host.cpus != cpus:
        yield warn(
            node,
            value,
            f"{host.cpus} processors may be used, on the others {cpus}",
            f"on {node}: compare `nproc` and `nproc --all`, and what the batch system gives",
        )
    if host.cpu_quota is not None and host.cpu_quota < host.cpus:
        yield warn(
            node,
            value,
            f"a control group allows {host.cpu_quota:g} of {host.cpus} processors",
            "start the container with a larger `--cpus`, or ask the batch system for more",
        )
    if host.governor not in (None, "performance"):
        yield warn(
            node,
            value,
            f"the governor of its processors is {host.governor}",
            f"on {node}: `sudo cpupower frequency-set -g performance`",
        )


PROCESSORS = NodeCheck("processors", CheckArea.HOST, find_processors)


def find_load(examined: Examination) -> Iterator[NodeFinding]:
    for node, facts in examined.facts():
        host = facts.host
        value = f"{host.load:.1f}"
        if host.load > LOAD_PER_CPU * host.cpus:
            yield warn(
                node,
                value,
                f"a load of {host.load:.1f} on {host.cpus} processors: something else is at work",
                f"on {node}: `ps -eo pid,user,pcpu,args --sort=-pcpu | head` names it",
            )
        else:
            yield ok(node, value)


LOAD = NodeCheck("load", CheckArea.HOST, find_load)


def find_memory(examined: Examination) -> Iterator[NodeFinding]:
    for node, facts in examined.facts():
        amounts = [facts.host.memory_available, facts.host.memory_limit]
        usable = min((each for each in amounts if each is not None), default=None)
        if usable is None:
            yield ok(node, "not told")
        elif usable < MEMORY_AVAILABLE_BYTES:
            yield warn(
                node,
                format_bytes(usable),
                f"{format_bytes(usable)} of memory can be had",
                f"on {node}: `ps -eo pid,user,rss,args --sort=-rss | head` names who has it; in a container, "
                "raise `--memory`",
            )
        else:
            yield ok(node, f"{format_bytes(usable)} free")


MEMORY = NodeCheck("memory", CheckArea.HOST, find_memory)


def find_shared_memory(examined: Examination) -> Iterator[NodeFinding]:
    for node, facts in examined.facts():
        yield _shared_memory(node, facts)


def _shared_memory(node: str, facts: NodeFacts) -> NodeFinding:
    space = facts.shared_memory
    if space.total is None or space.free is None:
        return bad(node, "none", "there is no /dev/shm", f"on {node}: `sudo mount -t tmpfs shm /dev/shm`")
    needed = SHARED_MEMORY_PER_GPU * max(1, len(facts.gpus))
    value = format_bytes(space.total)
    fix = (
        f"start the container with `--ipc=host` or `--shm-size={needed // GIB}g`; "
        f"without one, on {node}: `sudo mount -o remount,size={needed // GIB}G /dev/shm`"
    )
    what = f"/dev/shm has {value}, and {needed // GIB} GiB are wanted"
    if space.total <= SHARED_MEMORY_OF_DOCKER or (facts.gpus and space.total < needed):
        return bad(node, value, what, fix)
    if space.total < needed:
        return warn(node, value, what, fix)
    if space.free < needed:
        return warn(
            node,
            value,
            f"of the {value} in /dev/shm only {format_bytes(space.free)} are free",
            f"on {node}: `ls -lS /dev/shm | head` shows what lies there; remove what no process uses",
        )
    return ok(node, value)


SHARED_MEMORY = NodeCheck("shared memory", CheckArea.HOST, find_shared_memory)


def find_locked_memory(examined: Examination) -> Iterator[NodeFinding]:
    for node, facts in examined.facts():
        soft = facts.locked_memory.soft
        value = "unlimited" if soft is None else format_bytes(soft)
        if soft is not None and facts.infiniband:
            yield bad(
                node,
                value,
                f"a process may lock {value} of memory, and InfiniBand needs all of its buffers locked",
                f"on {node}: `echo '* - memlock unlimited' | sudo tee /etc/security/limits.d/memlock.conf`, "
                "then log in anew; in a container, `--ulimit memlock=-1`; under Slurm, "
                "LimitMEMLOCK=infinity in slurmd's unit",
            )
        else:
            yield ok(node, value)


LOCKED_MEMORY = NodeCheck("locked memory", CheckArea.HOST, find_locked_memory)


def find_open_files(examined: Examination) -> Iterator[NodeFinding]:
    for node, facts in examined.facts():
        soft = facts.open_files.soft
        value = "unlimited" if soft is None else f"{soft:,}"
        if soft is None or soft >= OPEN_FILES:
            yield ok(node, value)
        else:
            what = f"a process may open {value} files, and {OPEN_FILES:,} or more are wanted"
            yield warn(node, value, what, f"on {node}: {_open_files_fix(facts.open_files)}")


def _open_files_fix(limit: ResourceLimit) -> str:
    if limit.hard is None or limit.hard >= OPEN_FILES:
        return f"`ulimit -n {min(OPEN_FILES_SUGGESTED, limit.hard or OPEN_FILES_SUGGESTED)}` in ~/.profile"
    return (
        f"`echo '* - nofile {OPEN_FILES_SUGGESTED}' | sudo tee /etc/security/limits.d/nofile.conf`, "
        f"then log in anew; in a container, `--ulimit nofile={OPEN_FILES_SUGGESTED}`"
    )


FILE_LIMIT = NodeCheck("open files", CheckArea.HOST, find_open_files)


def find_scratch(examined: Examination) -> Iterator[NodeFinding]:
    for node, facts in examined.facts():
        path, free = facts.scratch.path, facts.scratch.free
        quoted = shlex.quote(path)
        if free is None:
            yield bad(node, "none", f"there is no folder {path}", f"on {node}: `mkdir -p {quoted}`")
            continue
        value = f"{format_bytes(free)} free"
        fix = f"on {node}: `du -xh {quoted} | sort -h | tail` shows what can go"
        if free < SCRATCH_BAD_BYTES:
            yield bad(node, value, f"{path} is full but for {value}", fix)
        elif free < SCRATCH_WARN_BYTES:
            yield warn(node, value, f"{path} has only {value}", fix)
        else:
            yield ok(node, value)


SCRATCH = NodeCheck("scratch", CheckArea.HOST, find_scratch)
