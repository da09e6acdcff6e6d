"""Whether /dev/shm holds what the ranks of a node and their loaders share."""

from __future__ import annotations

from collections.abc import Iterator

from trainmark.doctor.examined import Examined
from trainmark.doctor.facts import Facts
from trainmark.doctor.finding import About, Check, Finding, bad, ok, warn
from trainmark.doctor.limits import GIB, SHARED_MEMORY_OF_DOCKER, SHARED_MEMORY_PER_GPU
from trainmark.doctor.words import size


def find(examined: Examined) -> Iterator[Finding]:
    for node, facts in examined.facts():
        yield _of(node, facts)


def _of(node: str, facts: Facts) -> Finding:
    space = facts.shared_memory
    if space.total is None or space.free is None:
        return bad(node, "none", "there is no /dev/shm", f"on {node}: `sudo mount -t tmpfs shm /dev/shm`")
    needed = SHARED_MEMORY_PER_GPU * max(1, len(facts.gpus))
    value = size(space.total)
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
            f"of the {value} in /dev/shm only {size(space.free)} are free",
            f"on {node}: `ls -lS /dev/shm | head` shows what lies there; remove what no process uses",
        )
    return ok(node, value)


CHECK = Check("shared memory", About.HOST, find)
