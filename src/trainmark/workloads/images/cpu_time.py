"""CPU seconds of this process and all that it started, from /proc: a loader's hidden helpers count too."""

import os

TICKS = os.sysconf("SC_CLK_TCK")
PARENT, USER, SYSTEM = 1, 11, 12  # after the name of the command in /proc/PID/stat


def of_tree():
    """User and system seconds; a child that has ended is in its parent's account."""
    parents, seconds = {}, {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", "rb") as file:
                    values = file.read().rpartition(b")")[2].split()
            except OSError:  # it ended meanwhile
                continue
            parents[int(entry)] = int(values[PARENT])
            # With what its own ended children used.
            seconds[int(entry)] = sum(int(value) for value in values[USER : SYSTEM + 3]) / TICKS
    return sum(seconds[pid] for pid in seconds if _descends(pid, os.getpid(), parents))


def _descends(pid, ancestor, parents):
    while pid and pid != ancestor:
        pid = parents.get(pid, 0)
    return pid == ancestor
