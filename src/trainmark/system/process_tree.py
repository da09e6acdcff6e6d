"""Which processes belong to a trial, and how much processor time they have used.

A full look at every process twice a second would disturb what is measured. So the parent of a process is
read once, when it first appears, and the clock only of those that are ours: the cost grows with our own tree
and hardly with the host's.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


@dataclass(frozen=True)
class Stat:
    """The part of /proc/PID/stat that says where a process belongs and what it used."""

    parent: int
    session: int
    own_ticks: int
    children_ticks: int


class ProcessTree:
    """The descendants of `root_pid`, found again at each `refresh`, also those whose parent has died."""

    def __init__(self, root_pid: int, proc: Path = Path("/proc")) -> None:
        self._root_pid = root_pid
        self._proc = proc
        self._ours: dict[int, bool] = {}

    def refresh(self) -> None:
        """Take in the processes that have appeared and forget those that are gone."""
        alive = sorted(int(name) for name in os.listdir(self._proc) if name.isdecimal())  # noqa: PTH208 (a Path for each process is too dear)
        new = {pid: self._stat(pid) for pid in alive if pid not in self._ours}
        self._ours = {pid: self._ours[pid] for pid in alive if pid in self._ours}
        for pid in new:
            self._judge(pid, new)

    @property
    def members(self) -> frozenset[int]:
        return frozenset(pid for pid, ours in self._ours.items() if ours)

    @property
    def others(self) -> frozenset[int]:
        """Every other process that can be seen from here."""
        return frozenset(pid for pid, ours in self._ours.items() if not ours)

    def seconds(self) -> float:
        """Processor time of the tree since it began; a child's goes to its parent when it is reaped."""
        stats = [stat for pid in self.members if (stat := self._stat(pid))]
        return sum(stat.own_ticks + stat.children_ticks for stat in stats) / TICKS_PER_SECOND

    def own_seconds(self, pid: int) -> float:
        """Processor time of one process without its children; 0 where it is gone."""
        stat = self._stat(pid)
        return stat.own_ticks / TICKS_PER_SECOND if stat else 0.0

    def _judge(self, pid: int, new: dict[int, Stat | None]) -> bool:
        """Ours if it is the root, in the root's session, or a child of one of ours."""
        if pid not in self._ours:
            stat = new.get(pid)
            self._ours[pid] = pid == self._root_pid or (
                stat is not None and (stat.session == self._root_pid or self._judge(stat.parent, new))
            )
        return self._ours[pid]

    def _stat(self, pid: int) -> Stat | None:
        try:
            text = (self._proc / str(pid) / "stat").read_bytes()
        except OSError:
            return None
        # The second field is the program's name in brackets and may itself hold spaces and brackets.
        fields = text[text.rindex(b")") + 2 :].split()
        own, children = int(fields[11]) + int(fields[12]), int(fields[13]) + int(fields[14])
        return Stat(parent=int(fields[1]), session=int(fields[3]), own_ticks=own, children_ticks=children)
