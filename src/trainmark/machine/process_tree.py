"""A trial's own part of a machine: its processes, the GPUs that it may see, its memory on a GPU."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


@dataclass(frozen=True)
class ProcessStat:
    """The part of /proc/PID/stat that says where a process belongs and what it used."""

    is_zombie: bool
    parent: int
    own_ticks: int
    children_ticks: int
    resident_pages: int


class ProcessTree:
    """`root_pid` and all below it as of the last `refresh`.

    What a child leaves behind stays in the tree of a root that adopts it, as the agent does
    (PR_SET_CHILD_SUBREAPER).
    """

    def __init__(self, root_pid: int, proc: Path = PROC) -> None:
        self._root_pid = root_pid
        self._proc = proc
        self.members = frozenset([root_pid])
        self.watchers: set[int] = set()
        """Processes of the tree that watch the trial, and are no part of it."""

    def refresh(self) -> None:
        """Take in the processes that have appeared and forget those that are gone."""
        self.members = frozenset([self._root_pid, *_descendant_pids(self._root_pid, self._proc)])

    def count_others(self, pids: Iterable[int]) -> int:
        """Count those of `pids` that are not in the tree.

        Inside a container NVML names processes by the host's numbers, which mean nothing here: only those
        that can be seen from here are counted.
        """
        return sum((self._proc / str(pid)).exists() for pid in set(pids) - self.members)

    def seconds(self) -> float:
        """Processor time of the tree since it began; a child's goes to its parent when it is reaped."""
        stats = [stat for pid in self.members if (stat := _stat(pid, self._proc))]
        return sum(stat.own_ticks + stat.children_ticks for stat in stats) / TICKS_PER_SECOND

    def resident_bytes(self) -> int:
        """Memory of all below the root: the sum of their resident sets (RSS).

        Pages that several processes share count once for each. The proportional set (PSS) would not, but the
        kernel walks all pages of a process for it, milliseconds in which that process cannot map memory.
        """
        trained = self.members - self.watchers - {self._root_pid}
        return sum(stat.resident_pages for pid in trained if (stat := _stat(pid, self._proc))) * PAGE_BYTES

    def own_seconds(self, pid: int) -> float:
        """Processor time of one process without its children; 0 where it is gone."""
        stat = _stat(pid, self._proc)
        return stat.own_ticks / TICKS_PER_SECOND if stat else 0.0


def descendants(root: int) -> list[int]:
    """All living processes below `root`; zombies are gone already.

    One that is forked or reparented meanwhile can be missed, so ask again until nothing is left.
    """
    stats = ((pid, _stat(pid, PROC)) for pid in _descendant_pids(root, PROC))
    return [pid for pid, stat in stats if stat is not None and not stat.is_zombie]


def _descendant_pids(root: int, proc: Path) -> list[int]:
    """Walked down from `root`: with thousands of processes on the machine, reading all would cost more."""
    children_of = (
        _listed_children if (proc / f"{root}/task/{root}/children").exists() else _scanned_children(proc)
    )
    pids: list[int] = []
    queue = [root]
    while queue:
        children = children_of(queue.pop())
        pids += children
        queue += children
    return pids


def _listed_children(pid: int) -> list[int]:
    """Those forked by any of its threads."""
    children: list[int] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208  called often
            with contextlib.suppress(OSError):
                children += map(int, _read(f"/proc/{pid}/task/{thread}/children").split())
    return children


def _scanned_children(proc: Path) -> Callable[[int], list[int]]:
    """For a kernel without `children` files (CONFIG_PROC_CHILDREN)."""
    children: dict[int, list[int]] = {}
    for entry in proc.iterdir():
        if entry.name.isdigit() and (stat := _stat(int(entry.name), proc)):
            children.setdefault(stat.parent, []).append(int(entry.name))
    return lambda pid: children.get(pid, [])


def _stat(pid: int, proc: Path) -> ProcessStat | None:
    with contextlib.suppress(OSError, ValueError, IndexError):
        text = _read(f"{proc}/{pid}/stat")
        # The second field is the program's name in brackets and may itself hold spaces and brackets.
        fields = text[text.rindex(b")") + 2 :].split()
        own, children = int(fields[11]) + int(fields[12]), int(fields[13]) + int(fields[14])
        return ProcessStat(fields[0] == b"Z", int(fields[1]), own, children, resident_pages=int(fields[21]))
    return None


def _read(path: str) -> bytes:
    """A file of /proc, without the cost of a file object."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        pieces = []
        while piece := os.read(descriptor, 1 << 14):
            pieces.append(piece)
        return b"".join(pieces)
    finally:
        os.close(descriptor)


def visible_indices(visible: str | None, uuids: Mapping[int, str]) -> Sequence[int]:
    """Return what CUDA makes of the variable: numbers or beginnings of UUIDs, up to the first unknown one."""
    if visible is None:
        return list(uuids)
    chosen: list[int] = []
    for entry in filter(None, (part.strip() for part in visible.split(","))):
        if re.fullmatch(r"\d+", entry):
            matches = [int(entry)] if int(entry) in uuids else []
        else:
            matches = [index for index, uuid in uuids.items() if uuid.startswith(entry)]
        if len(matches) != 1 or matches[0] in chosen:
            break
        chosen += matches
    return chosen


# A CUDA context alone takes more; what comes and goes below this is the driver's own.
LEAST_OWN_BYTES = 1 << 26


def own_memory(
    processes: Mapping[int, int | None], tree: ProcessTree, used: int | None, before: int | None
) -> int | None:
    """Return the bytes that processes of the tree use on a GPU, None where nothing tells.

    `processes` are those on the GPU with the bytes of each, where the driver tells them. Inside a container
    they have the host's numbers, or are not listed at all: then it is what the GPU has in use (`used`) beyond
    what it had when the trial had not yet come to it (`before`).
    """
    ours = [process_bytes for pid, process_bytes in processes.items() if pid in tree.members]
    known = [process_bytes for process_bytes in ours if process_bytes is not None]
    if ours and len(known) == len(ours):
        return sum(known)
    if not ours and processes and tree.count_others(processes) == len(processes):
        return 0  # all are others', and seen from here
    if used is None or before is None:
        return None
    return used - before if used - before >= LEAST_OWN_BYTES else 0
