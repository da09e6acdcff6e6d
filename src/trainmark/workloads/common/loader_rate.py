"""The rate of a loader alone: its batches in so many seconds, and the CPU seconds of all its processes."""

import os
import time

WARM_BATCHES = 4


def timed(batches, seconds, warm_seconds, cpu_seconds=time.process_time):
    """Return the number of batches, their seconds and their CPU seconds, after a warm-up.

    The warm-up lasts `warm_seconds` and at least WARM_BATCHES; `cpu_seconds` is the clock of CPU time.
    """
    began = time.perf_counter()
    for count, _ in enumerate(batches, 1):
        if count >= WARM_BATCHES and time.perf_counter() - began >= warm_seconds:
            break
    cpu, wall, count, elapsed = cpu_seconds(), time.perf_counter(), 0, 0.0
    for _ in batches:
        count += 1
        elapsed = time.perf_counter() - wall
        if elapsed >= seconds:
            break
    return count, elapsed, cpu_seconds() - cpu


TICKS = os.sysconf("SC_CLK_TCK")
STAT_PARENT, STAT_USER, STAT_SYSTEM = 1, 11, 12  # after the name of the command in /proc/PID/stat


def process_tree_cpu_seconds():
    """User and system seconds; a child that has ended is in its parent's account."""
    parents, seconds = {}, {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", "rb") as file:
                    values = file.read().rpartition(b")")[2].split()
            except OSError:  # it ended meanwhile
                continue
            parents[int(entry)] = int(values[STAT_PARENT])
            # With what its own ended children used.
            seconds[int(entry)] = sum(int(value) for value in values[STAT_USER : STAT_SYSTEM + 3]) / TICKS
    return sum(seconds[pid] for pid in seconds if _descends(pid, os.getpid(), parents))


def _descends(pid, ancestor, parents):
    while pid and pid != ancestor:
        pid = parents.get(pid, 0)
    return pid == ancestor
